/** The last picture that the user opened: kept in this browser alone, so that loading the page anew does not lose it. */
import type { Edit } from "./edit";

const NAME = "distill-lens";
const KEY = "last";

/** As it was shown. */
export interface KeptPicture {
  file: Blob;
  name: string;
  stem: string;
  mirror: boolean;
  edit?: Edit;
}

/** Null: none from now on. Where the browser keeps nothing, as in a private window, nothing happens. */
export async function keepPicture(picture: KeptPicture | null): Promise<void> {
  const done = picture
    ? inStore<unknown>("readwrite", (store) => store.put(picture, KEY) as IDBRequest)
    : inStore<unknown>("readwrite", (store) => store.delete(KEY) as IDBRequest);
  await done.catch(() => {});
}

export async function keptPicture(): Promise<KeptPicture | null> {
  const found = await inStore("readonly", (store) => store.get(KEY)).catch(() => null);
  return (found as KeptPicture | undefined) ?? null;
}

async function inStore<T>(mode: IDBTransactionMode, use: (store: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  const opening = indexedDB.open(NAME);
  opening.onupgradeneeded = () => opening.result.createObjectStore(NAME);
  const database = await answer(opening);
  try {
    return await answer(use(database.transaction(NAME, mode).objectStore(NAME)));
  } finally {
    database.close();
  }
}

function answer<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((done, failed) => {
    request.onsuccess = () => done(request.result);
    request.onerror = () => failed(request.error);
  });
}
