import type { PageWords, Strings } from "./en";

const megabytes = (bytes: number) => (bytes / 1e6).toFixed(1).replace(".", ",");
const minutes = (seconds: number) =>
  `${Math.floor(seconds / 60)}:${String(Math.floor(seconds) % 60).padStart(2, "0")}`;
const PICTURES = "Bilder gehen auch ohne.";

export const german: Strings = {
  camera: {
    insecure: `Browser geben die Kamera nur https-Seiten und localhost. Starten Sie distill.lens mit https=true. ${PICTURES}`,
    refused: `Die Kamera wurde verweigert. Erlauben Sie sie in den Einstellungen des Browsers für diese Seite und drücken Sie noch einmal auf Kamera. ${PICTURES}`,
    none: `Es wurde keine Kamera gefunden. ${PICTURES}`,
    busy: `Die Kamera kann nicht gelesen werden: Vielleicht benutzt sie ein anderes Programm. ${PICTURES}`,
    other: (name) => `Die Kamera ist nicht angesprungen (${name}). ${PICTURES}`,
    lost: `Die Kamera wurde getrennt. ${PICTURES}`,
    stalled: "Die Kamera gibt gerade keine Bilder. Die Seite versucht es von selbst wieder.",
    start: "Kamera",
    stop: "Stopp",
  },
  files: {
    example: "das Beispiel",
    unnamed: "Die Datei",
    noPicture: (name) =>
      `${name}: kein Bild, das dieser Browser lesen kann. Versuchen Sie es mit JPEG, PNG oder WebP.`,
    noVideo: (name) =>
      `${name}: kein Video, das dieser Browser abspielen kann. Versuchen Sie es mit MP4 oder WebM.`,
    missing: (name, why) => `${name} ist nicht angekommen: ${why}`,
    silent: "der Server antwortet nicht",
    broken: "die Verbindung ist abgebrochen",
    status: (status) => `der Server antwortet ${status}`,
    noFile: "der Browser konnte keine Datei daraus machen",
    incomplete: (why) => `Die Dateien der Seite sind nicht vollständig: ${why}`,
  },
  network: {
    noWorker: "ein Teil der Seite wurde nicht geladen; laden Sie sie neu",
    cannotRun: (name, side, why) => `${name} läuft nicht bei ${side}: ${why}.`,
    again: "Die Seite versucht es von selbst wieder.",
    noStudent: "es ist kein Netz offen",
    notFinite: "seine Ausgabe ist nicht endlich",
    terms: (name, licence) => `Bedingungen von ${name}: ${licence}.`,
  },
  part: {
    missing: {
      people: (why) => `Menschen und Hintergrund sind nicht zu unterscheiden: ${why}. Gezeichnet wird alles.`,
      faces: (why) => `Gesichter sind nicht zu erkennen: ${why}. Gezeichnet wird alles.`,
    },
    noFace: "In diesem Bild wurde kein Gesicht gefunden: es bleibt, wie es ist.",
  },
  own: {
    refused: (name, why) => `${name} kann kein Stil sein: ${why}.`,
    unreadable: "kein ONNX-Netz, oder eines, das ONNX Runtime im Browser nicht ausführt",
    inputs: (count) => `es hat ${count} Eingaben, gebraucht wird eine: das Bild`,
    otherInput: (type, shape) =>
      `seine Eingabe ist ${type} ${shape}, gebraucht wird float32 1 × 3 × Höhe × Breite`,
    otherOutput: (type, shape) =>
      `seine Ausgabe ist ${type} ${shape}, gebraucht wird float32, so groß wie das Bild, mit 3 oder 4 Kanälen`,
    range: (low, high) =>
      `es gibt Werte von ${low.toPrecision(3)} bis ${high.toPrecision(3)}, gebraucht wird RGB in [0, 1], hinein und hinaus`,
  },
  backend: {
    wasm: (threads) => `WASM, ${threads} ${threads === 1 ? "Thread" : "Threads"}`,
    reason: (where, why) => `${where}: ${why}.`,
    asked: "wie es die Adresse verlangt",
    emulated: "wie es die Adresse verlangt; auf der CPU nachgebildet",
    card: "auf der Grafikkarte",
    failed: (why) => `WebGPU ist ausgefallen (${why})`,
    needsHttps: "WebGPU braucht eine über https geöffnete Seite",
    noWebGpu: "dieser Browser hat kein WebGPU",
    noCard: "keine Grafikkarte für WebGPU",
    onlyEmulated: "WebGPU ist hier nur nachgebildet",
    oneThreadHttps: "nicht mehr Threads, da die Seite nicht über https geöffnet wurde",
    oneThreadHeaders: "nicht mehr Threads, da dieser Server keine COOP/COEP-Header sendet",
  },
  film: {
    start: "Filmen",
    stop: (seconds) =>
      `Stopp ${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`,
    silent: "Der Film hat keinen Ton: Das Mikrofon wurde verweigert, oder es gibt keines.",
    notStarted: (why) => `Der Film hat nicht begonnen: ${why}`,
    failed: "der Browser konnte den Film nicht fortsetzen",
  },
  video: {
    draw: "Film sichern",
    cancel: "Abbruch",
    progress: (percent, left) =>
      left === null ? `${percent} %` : `${percent} % · noch ${minutes(left)}`,
    done: (frames, silent) =>
      `Der Film ist gesichert: ${frames} ${frames === 1 ? "Bild" : "Bilder"}${silent ? ", ohne Ton: Dieser Browser kann ihn nicht übernehmen" : ""}.`,
    failed: (why) => `Der Film wurde nicht gezeichnet: ${why}.`,
    unreadable: "dieser Browser kann das Video nicht Bild für Bild lesen",
    unwritable: "dieser Browser kann keine Filme schreiben",
  },
  full: {
    save: "Sichern",
    cancel: "Abbruch: Das Bild wird nicht gesichert",
    done: (width, height) => `Das Bild ist in ${width} × ${height} gesichert.`,
    failed: (why) => `Das Bild wurde nicht gesichert: ${why}.`,
  },
  loop: {
    start: "Schleife",
    left: (seconds) => `${seconds.toFixed(1).replace(".", ",")} s`,
    done: "Die Schleife ist als GIF-Datei gesichert.",
    failed: "der Browser konnte keine GIF-Datei daraus machen",
  },
  copied: "Das Bild ist in der Zwischenablage.",
  linkCopied: "Ein Link auf diese Seite mit diesen Einstellungen ist in der Zwischenablage.",
  updated: "Diese Seite ist eine neue Fassung der bisherigen.",
  forgotten: "Die Einstellungen sind vergessen.",
  percent: (count) => `${count} %`,
  pen: { down: "Stift aufgesetzt.", up: "Stift abgehoben." },
  divider: (percent) => `${percent} % Foto`,
  pixels: (count) => `${count} px`,
  automatic: (count) => `Automatisch (${count} px)`,
  speed: (fps, ms) => `${fps} Bilder/s · ${ms}`,
  milliseconds: (ms) => `${ms} ms`,
  asking: "lädt …",
  loading: (loaded, total) =>
    total === null ? `${megabytes(loaded)} MB` : `${megabytes(loaded)} von ${megabytes(total)} MB`,
};

export const germanPage: PageWords = {
  Mode: "Ansicht",
  Photo: "Foto",
  Sketch: "Skizze",
  "The network runs on:": "Das Netz läuft auf:",
  "starting …": "startet …",
  "Loading the network": "Das Netz wird geladen",
  "Photo, live": "Foto, live",
  "The photo": "Das Foto",
  "The stylised photo": "Das stilisierte Foto",
  photo: "Foto",
  "Divider: the photo on its left, the stylised picture on its right":
    "Trennlinie: links das Foto, rechts das stilisierte Bild",
  Speed: "Geschwindigkeit",
  Picture: "Bild",
  Camera: "Kamera",
  Flip: "Drehen",
  Freeze: "Standbild",
  "Freeze: the camera's picture stays, and is drawn as finely as the screen shows":
    "Standbild: Das Bild der Kamera bleibt und wird so fein gezeichnet, wie der Bildschirm zeigt",
  Mirror: "Spiegeln",
  Compare: "Vergleich",
  "Compare: the photo beside the stylised picture":
    "Vergleich: das Foto neben dem stilisierten Bild",
  Record: "Filmen",
  Loop: "Schleife",
  "Loop: two seconds as a GIF that plays there and back":
    "Schleife: zwei Sekunden als GIF, das hin und zurück läuft",
  "Save film": "Film sichern",
  "Draw every frame of the video and save the film":
    "Jedes Bild des Videos zeichnen und den Film sichern",
  "Drawing the film": "Der Film wird gezeichnet",
  "Drawing the picture at its full size": "Das Bild wird in voller Größe gezeichnet",
  Open: "Öffnen",
  "Open a picture, a video or a network": "Ein Bild, ein Video oder ein Netz öffnen",
  "Open a picture, a video or an .onnx network: also dropped or pasted":
    "Ein Bild, ein Video oder ein .onnx-Netz öffnen: auch durch Ablegen oder Einfügen",
  Example: "Beispiel",
  Save: "Sichern",
  "Save the stylised picture": "Das stilisierte Bild sichern",
  Share: "Teilen",
  Copy: "Kopieren",
  "Copy what is shown": "Kopieren, was zu sehen ist",
  "Copy what is shown (Ctrl+C)": "Kopieren, was zu sehen ist (Strg+C)",
  "Picture, video, or network as an ONNX file": "Bild, Video, oder Netz als ONNX-Datei",
  Paper: "Papier",
  "Your sketch": "Ihre Skizze",
  "Draw with mouse, finger or pen. By keyboard: the arrow keys move the pen, with Shift further; Space puts it down and lifts it.":
    "Zeichnen Sie mit Maus, Finger oder Stift. Mit der Tastatur: Die Pfeiltasten bewegen den Stift, mit Umschalt weiter; die Leertaste setzt ihn auf und hebt ihn ab.",
  "your lines": "Ihre Striche",
  "The picture made of your lines": "Das Bild aus Ihren Strichen",
  "Draw on the left, or trace the outline.": "Zeichnen Sie links, oder ziehen Sie den Umriss nach.",
  "Sketch tools": "Zeichengeräte",
  Pen: "Stift",
  Eraser: "Gummi",
  Undo: "Zurück",
  Redo: "Wieder",
  Clear: "Leeren",
  Outline: "Umriss",
  "Save the sticker as a PNG file": "Den Sticker als PNG-Datei sichern",
  Settings: "Einstellungen",
  Style: "Stil",
  Resolution: "Auflösung",
  Draw: "Zeichnen",
  Everything: "Alles",
  People: "Menschen",
  Background: "Hintergrund",
  Faces: "Gesichter",
  Strength: "Stärke",
  Steadiness: "Ruhe",
  "Save as": "Sichern als",
  "JPEG quality": "JPEG-Qualität",
  "Save the photo beside it": "Foto daneben sichern",
  "Save at full size": "In voller Größe sichern",
  "Record with sound": "Mit Ton filmen",
  "Line width": "Strichstärke",
  "Everything runs in this browser. No picture leaves it.":
    "Alles läuft in diesem Browser. Kein Bild verlässt ihn.",
  "Copy a link to this": "Link hierauf kopieren",
  "Forget my settings": "Einstellungen vergessen",
  "Open-source licences": "Open-Source-Lizenzen",
  "Drop it here": "Hier ablegen",
};
