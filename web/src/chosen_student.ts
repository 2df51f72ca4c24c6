/** Which student draws: the chosen one once it is there and runs, until then the one that ran last. */
import { reason, say, unsay, type Lines } from "./dom";
import type { Engine } from "./engine";
import type { Student } from "./manifest";
import { strings } from "./strings";

export interface Choice {
  student: Student;
  side: number;
}

const FIRST = 2000; // ms until a missing file is asked for again; then twice as long each time
const LONGEST = 30_000;
const TRIES = 5; // for a student that another one stands in for

export class ChosenStudent {
  /** What draws; null until the first one is there. */
  now: Choice | null = null;
  private wanted: Choice | null = null;
  private good: Choice | null = null;
  private tries = 0;
  private timer = 0;
  private said = "";

  private readonly online = () => void (this.timer && this.bring());

  /** `changed`: draw with `now`. `show`: the pickers are to show this one, which the user left. */
  constructor(
    private readonly engine: Engine,
    private readonly changed: () => void,
    private readonly show: (choice: Choice) => void,
    private readonly lines: Lines = { say, unsay },
  ) {
    addEventListener("online", this.online);
  }

  /** Nothing is asked for any more. */
  stop(): void {
    clearTimeout(this.timer);
    removeEventListener("online", this.online);
  }

  choose(choice: Choice): void {
    this.wanted = choice;
    this.tries = 0;
    if (choice.student === this.now?.student) this.take(choice); // its file is there
    else this.bring();
  }

  /** It has drawn, and can be gone back to. */
  ran(choice: Choice): void {
    this.good = choice;
  }

  /** It has come, but cannot run. Whether an earlier one takes its place. */
  failed(error: unknown): boolean {
    const { good, now } = this;
    this.tell(now!, reason(error), false);
    this.said = ""; // it stays, whatever draws now
    this.good = null;
    if (!good || same(good, now!)) return false;
    [this.now, this.wanted] = [good, good];
    this.show(good);
    return true;
  }

  private bring(): void {
    clearTimeout(this.timer);
    this.timer = 0;
    const choice = this.wanted!;
    this.engine.fetch(choice.student).then(
      () => choice === this.wanted && this.take(choice),
      (error) => choice === this.wanted && this.missed(choice, error),
    );
  }

  private take(choice: Choice): void {
    clearTimeout(this.timer);
    this.timer = 0;
    if (this.tries) this.show(choice);
    this.lines.unsay(this.said);
    this.now = choice;
    this.changed();
  }

  /** Asked for again by itself; where another one runs, that goes on and is shown as chosen. */
  private missed(choice: Choice, error: unknown): void {
    this.tries += 1;
    const again = !this.engine.failed && (!this.now || this.tries < TRIES);
    this.tell(choice, reason(error), again);
    if (this.now) this.show(this.now);
    if (!again) return;
    const rest = Math.min(FIRST * 2 ** (this.tries - 1), LONGEST);
    this.timer = window.setTimeout(() => this.bring(), rest);
  }

  private tell({ student, side }: Choice, why: string, again: boolean): void {
    const text = strings.network.cannotRun(student.name, side, why);
    const line = again ? `${text} ${strings.network.again}` : text;
    if (line !== this.said || this.tries < 2) this.lines.say(line); // not read aloud at every try
    this.said = line;
  }
}

function same(one: Choice, other: Choice): boolean {
  return one.student === other.student && one.side === other.side;
}
