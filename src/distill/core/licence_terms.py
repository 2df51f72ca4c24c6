"""Terms: under which something may be used, by the terms of all that it was made from.

Nothing here imports PyTorch: the page reads them out of ONNX files.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from pydantic import TypeAdapter

from distill.core.errors import DistillError

Answer = Literal["yes", "no", "unknown"]
NOTE = "distill.terms"  # in the metadata of ONNX and Core ML files: JSON of `Terms.plain`
UNSAID = "not said"
TAKEN_DOWN = "pictures taken down"  # what a link is of that says so
PLACEHOLDERS = ("", "yours to say", "that of your file", UNSAID)  # of conf/style, and of cards
STYLE = "style picture "  # how the name of a link begins that is of one
LONGEST = 300  # characters of a text that came in a file
STRICT: Mapping[str, Answer] = {"commercial": "no", "share_alike": "yes", "attribution": "yes"}

# How a licence's text begins: what the Hub calls it, and the answers in the order of STRICT.
KNOWN: Mapping[str, tuple[str, Answer, Answer, Answer]] = {
    "MIT": ("mit", "yes", "no", "yes"),
    "Apache-2.0": ("apache-2.0", "yes", "no", "yes"),
    "CC0": ("cc0-1.0", "yes", "no", "no"),
    "CC0 1.0": ("cc0-1.0", "yes", "no", "no"),
    "CC BY 4.0": ("cc-by-4.0", "yes", "no", "yes"),
    "CC BY-SA 4.0": ("cc-by-sa-4.0", "yes", "yes", "yes"),
    "CC BY-NC 4.0": ("cc-by-nc-4.0", "no", "no", "yes"),
    "CC BY-NC-SA 4.0": ("cc-by-nc-sa-4.0", "no", "yes", "yes"),
}
_ROW = re.compile(r"((?:.*: )?(?:photos|pictures [^:]+)): [\d,]+( by .+)?")
_OWN = re.compile(rf"photos|({STYLE}|pictures )(?!.*: ).*")
_FORBIDS = re.compile(r"(?i)non[- ]?commercial|not? (?:for )?commercial|research|\bNC\b")
_NARROWS = re.compile(r"(?i)\b(only|not|except|unless|but|personal|private|academic|editorial)\b")


def known_licence(text: str) -> tuple[str, Answer, Answer, Answer] | None:
    """The row of KNOWN for a text that names that licence and takes nothing back; else None.

    `cc-by-nc-4.0` and `CC BY-NC 4.0` are one.
    """
    plain = re.sub(r"[-\s]+", " ", text).strip().lower()
    for start, row in KNOWN.items():
        spelled = re.escape(start.replace("-", " ").lower())
        if re.fullmatch(rf"{spelled}(?:[,;].*| ?\(.*)?", plain):
            narrowed = _FORBIDS.search(text) or _NARROWS.search(text)
            return row if row[1] == "no" or not narrowed else None
    return None


def pictures_of(of: str) -> str:
    """What a link is of, the links that count rows of terms.csv without their number: `photos` of
    `photos: 3 by Anna`."""
    row = _ROW.fullmatch(of)
    return row[1] if row else of


@dataclass(frozen=True)
class Licence:
    """What is known of one thing that something was made from; `of` names it.

    `stated`: whoever trained or published it says so, no file; `note` says when, where it was said
    or corrected later.
    """

    of: str
    commercial: Answer = "unknown"
    share_alike: Answer = "unknown"
    attribution: Answer = "unknown"
    text: str = UNSAID
    source: str = ""
    stated: bool = False
    note: str = ""

    @classmethod
    def from_text(
        cls, of: str, text: str, source: str = "", stated: bool = False, note: str = ""
    ) -> Licence:
        """By the text of a licence; what that does not say is unknown."""
        text = UNSAID if text in PLACEHOLDERS else text
        forbidden: Answer = "no" if _FORBIDS.search(text) else "unknown"
        row = known_licence(text) or ("", forbidden, "unknown", "unknown")
        return cls(of, *row[1:], text, source, stated, note)


@dataclass(frozen=True)
class Terms:
    """The terms of all that something was made from, of which the strictest count.

    `permission` names the commands that were told that everybody has permitted what the user
    states: that alone counts then, and the chain stays on record.
    """

    chain: tuple[Licence, ...]
    permission: tuple[str, ...] = ()

    @property
    def counting(self) -> tuple[Licence, ...]:
        if not self.permission:
            return self.chain
        stated = tuple(each for each in self.chain if each.stated)
        return stated or (Licence("permission", "yes", text="by permission"),)

    @property
    def strictest(self) -> Licence:
        """All that counts, as one: its strictest answers, and whose is that on commercial use."""
        answers = dict[str, Any]()
        for question, strict in STRICT.items():
            every = {getattr(each, question) for each in self.counting}
            mixed = strict if strict in every else "unknown"
            answers[question] = every.pop() if len(every) == 1 else mixed
        decisive = (each for each in self.counting if each.commercial == answers["commercial"])
        return replace(next(decisive, Licence("")), **answers)

    @property
    def commercial(self) -> Answer:
        return self.strictest.commercial

    @property
    def line(self) -> str:
        """Everything in a line, for a page."""
        use = {"yes": "allowed", "no": "not allowed", "unknown": "unknown"}[self.commercial]
        texts = (f"{e.of}: {UNSAID}" if e.text == UNSAID else e.text for e in self.counting)
        return f"commercial use {use} ({'; '.join(dict.fromkeys(texts)) or UNSAID})"

    def beside(self, *others: Licence) -> Terms:
        """With what else it was made from; the same of the same thing once."""
        return self._with((*self.chain, *others))

    def _with(self, chain: Iterable[Licence]) -> Terms:
        return replace(self, chain=tuple(dict.fromkeys(chain)))

    def published(self, what: str, accept: str | None) -> Terms:
        """As `takedown.accept` of a command has it: for what reason it is published although
        pictures were taken down. Raises DistillError where they were and there is none."""
        open_ones = [e for e in self.chain if e.of.endswith(TAKEN_DOWN) and not e.stated]
        if open_ones and not (accept or "").strip():
            raise DistillError(
                f"{what}: {open_ones[0].text} (takedown.txt names them); make it again without "
                "them, or say why not: takedown.accept='REASON', which its files record"
            )
        changes: Any = {"commercial": "unknown", "stated": True}
        return self._with(
            replace(e, text=f"{e.text}; accepted: {accept}", **changes) if e in open_ones else e
            for e in self.chain
        )

    def permitted(self, command: str, by_user: bool) -> Terms:
        """As `licence.i_have_permission` of a command has it."""
        more = (command,) if by_user and command not in self.permission else ()
        return replace(self, permission=self.permission + more)

    def inherited(self, of: str) -> tuple[Licence, ...]:
        """The chain as a part of what is made from this. Permission is given to one, not to all.
        What comes from a part of the same name already, as in a student trained on again and
        again, stays at one level."""
        start = f"{of}: "
        return self._with(replace(e, of=start + e.of.removeprefix(start)) for e in self.chain).chain

    @property
    def of_others(self) -> Terms:
        """As those of what was fetched: nobody here stated them, nor replaces them."""
        return self._with(replace(e, stated=e.stated and e.of == TAKEN_DOWN) for e in self.chain)

    def amended(self, now: Iterable[Licence], fresh: bool = False) -> Terms:
        """With what is stated `now`: it fills in what nobody had said, and replaces what was stated
        earlier where it is `fresh` or has a later date. Everything else stays.

        What terms.csv counts now replaces what it counted, and where it counts all pictures an
        earlier word on all of them.
        """
        chain, now, groups = list(self.chain), [*now], dict[tuple[str, bool], list[Licence]]()
        counted = {of for e in now if (of := pictures_of(e.of)) != e.of}
        known = {e.of for e in chain} | ({pictures_of(e.of) for e in chain} - counted)
        for e in now:
            if e.text != UNSAID or e.of not in known:
                of = pictures_of(e.of)
                groups.setdefault((of, e.of != of), []).append(e)
        for (of, rows), words in groups.items():
            on = [e for e in chain if pictures_of(e.of) == of]
            alike = [e for e in on if (e.of != of) == rows]
            new = [w for w in words if not any(_same(w, e) for e in alike)]
            if not fresh and not rows:
                earlier = [e.note for e in alike if e.stated]
                new = [w for w in new if not w.stated or all(w.note > note for note in earlier)]
            whole = all(e.of != of for e in now) if rows else bool(new)
            gone = list[Licence]()
            if rows or any(w.stated for w in new):
                gone += [e for e in alike if e.stated and not any(_same(w, e) for w in words)]
            if whole:
                gone += [e for e in on if e.text == UNSAID]
            if rows and whole:
                later = words[0].note
                gone += [e for e in on if e not in alike and e.stated and e.note < later]
            old = [e for e in on if e in gone]
            if on and (fresh or rows):
                new = [_dated(w, old) if w.stated else w for w in new]
            chain = [*(e for e in chain if e not in old), *new]
        return self._with(chain)

    def restated(self, pictures: str) -> Terms:
        """With the owner's word on the pictures that it was made from. Raises DistillError where
        none are the owner's."""
        open_ones = (e for e in self.chain if e.text == UNSAID or not e.of.startswith(STYLE))
        names = dict.fromkeys(pictures_of(e.of) for e in open_ones)
        mine = [of for of in names if _OWN.fullmatch(of) and of != TAKEN_DOWN]
        if not mine:
            raise DistillError(
                f"licence.pictures={pictures}: it was made from no pictures of yours; the terms of "
                "others stay, python -m distill.check report=terms names them"
            )
        return self.amended((Licence.from_text(of, pictures, stated=True) for of in mine), True)

    def plain(self) -> dict[str, Any]:
        """As it is stored: the answers, what decides them, and the chain."""
        shown = (*STRICT, "text", "source")
        return {key: getattr(self.strictest, key) for key in shown} | asdict(self)

    def json(self) -> str:
        return json.dumps(self.plain(), ensure_ascii=False, sort_keys=True)


def _same(word: Licence, earlier: Licence) -> bool:
    """Whether a word is one that stands there already; an owner may add a source to it."""
    alike = (word.of, word.text) == (earlier.of, earlier.text)
    return alike and (not word.stated or word.source in ("", earlier.source))


def stated_on(seconds: float) -> str:
    """The note of a link that was stated then; later ones are greater."""
    return time.strftime("stated %Y-%m-%d %H:%M:%S", time.localtime(seconds))


def _dated(word: Licence, old: Iterable[Licence]) -> Licence:
    """With its date, and what the `old` ones said before, but for photos of another author."""

    def author(of: str) -> str:
        return (row[2] if (row := _ROW.fullmatch(of)) else "") or ""

    texts = [e.text for e in old if len({author(e.of), author(word.of)} - {""}) < 2]
    before = "; ".join(each for each in dict.fromkeys(texts) if each not in (UNSAID, word.text))
    when = word.note.partition(",")[0] or stated_on(time.time())
    return replace(word, note=f"{when}, before {before}" if before else when)


def read_terms(stored: Any) -> Terms:
    """The terms in what `plain` or `json` gave; answers are taken from the chain alone.

    Anything else is one link that says unknown: it came in a file.
    """
    try:
        stored = json.loads(stored) if isinstance(stored, str) else stored
        fields = {key: stored[key] for key in ("chain", "permission") if key in stored}
        terms = TypeAdapter(Terms).validate_python(fields)
    except (ValueError, TypeError, KeyError, RecursionError):  # pydantic's own too
        return Terms((Licence("its file", text="damaged"),))
    chain = list[Licence]()
    for each in terms.chain:
        texts = {key: getattr(each, key) for key in ("of", "text", "source", "note")}
        cut: Any = {key: " ".join(text.split())[:LONGEST] for key, text in texts.items()}
        chain.append(replace(each, **cut))
    return replace(terms, chain=tuple(chain) or (Licence("its file"),))
