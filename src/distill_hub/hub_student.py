"""A student on the Hugging Face Hub, as its library has models: save, load, push.

Needs huggingface_hub: pip install 'distill[hub]'.
"""

from pathlib import Path
from typing import Any, Self

from distill.core.errors import needed
from distill.core.files import write_whole
from distill.data.licence_terms import described_terms
from distill.data.takedown import note_published
from distill.models.network_file import read_network_file
from distill.runs.published_student import PublishedStudent
from distill_hub.published_student import (
    CARD,
    LIBRARY,
    TAGS,
    TASK,
    WEIGHTS,
    student_card,
    write_weights,
)

with needed("students on the Hub need huggingface_hub", "pip install 'distill[hub]'"):
    from huggingface_hub import ModelCard, PyTorchModelHubMixin, hf_hub_download


class HubStudent(  # type: ignore[call-arg]  # the library's own, which mypy does not read
    PublishedStudent, PyTorchModelHubMixin, library_name=LIBRARY, pipeline_tag=TASK, tags=TAGS
):
    """A `PublishedStudent` with save_pretrained, from_pretrained and push_to_hub.

    `HubStudent.of(RUN).push_to_hub("USER/NAME")` publishes model.safetensors, config.json and the
    card; `HubStudent.from_pretrained("USER/NAME")`, or of a folder, gives it back bit for bit. Only
    model.safetensors is read, as models.network_file does: config.json says the same to the Hub.
    """

    def save_pretrained(self, save_directory: str | Path, **more: Any) -> str | None:
        """Write the files into a folder; see huggingface_hub for `more`. Raises DistillError where
        pictures were taken down since it learnt."""
        described_terms(self.description).published(self.description.style.name, None)
        words = dict(more.get("model_card_kwargs") or {})
        if more.get("repo_id"):
            words.setdefault("repo", more["repo_id"])
        # The library leaves a card that is there: one of an earlier student would stay.
        folder = Path(save_directory)
        write_whole(folder / CARD, str(self.generate_model_card(**words).content))
        return super().save_pretrained(save_directory, **more)

    def push_to_hub(self, repo_id: str, **more: Any) -> str:
        """Publish the files; the card names the repository. See huggingface_hub for `more`."""
        words = {"repo": repo_id} | dict(more.pop("model_card_kwargs", None) or {})
        commit: str = super().push_to_hub(repo_id, model_card_kwargs=words, **more)
        if self.file is not None:
            note_published(self.file, repo_id)
        return commit

    def generate_model_card(self, *_: object, **words: str) -> ModelCard:
        """The card of `student_card`, whose `repo` and `sheet` may be given."""
        return ModelCard(student_card(self, **words))

    def _save_pretrained(self, save_directory: Path) -> None:
        write_weights(self, Path(save_directory))

    @classmethod
    def _from_pretrained(cls, *, model_id: str, map_location: str = "cpu", **more: Any) -> Self:
        """`model_id` is a folder or USER/NAME; the rest is huggingface_hub's."""
        path = Path(model_id) / WEIGHTS
        if not Path(model_id).is_dir():
            ways = ("revision", "cache_dir", "force_download", "local_files_only", "token")
            where = {key: more[key] for key in ways if key in more}
            path = Path(hf_hub_download(model_id, WEIGHTS, **where))
        network, description = read_network_file(path)
        return cls(description, network).to(map_location)
