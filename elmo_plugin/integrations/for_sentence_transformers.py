from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Union

from elmo_plugin.bilm.files.folders import CONFIG_FILE, SAFETENSORS_FILE
from elmo_plugin.corpora.tokenizer import treebank_words
from elmo_plugin.elmo.elmo import Elmo
from elmo_plugin.util.errors import ConfigurationError, optional_package
from elmo_plugin.util.weights import read_state, save_atomically

optional_package(
    "sentence_transformers.base.modules",
    "ElmoTokens, for sentence-transformers 5.7 or later,",
    "'sentence-transformers>=5.7'",
)
from sentence_transformers.base.modules import InputModule  # noqa: E402

_MIX_FILE = "mix.th"


class ElmoTokens(InputModule):
    """
    ELMo as the first module of a `SentenceTransformer`; `Pooling` comes next. Training changes only
    the scalar mix: the biLM is frozen, and saved with the model. For the biLM see `load_bilm`.
    """

    save_in_root = False

    def __init__(
        self,
        options_file: Optional[str] = None,
        weight_file: Optional[str] = None,
        bilm: Optional[str] = None,
    ) -> None:
        super().__init__()
        self.elmo = Elmo(options_file, weight_file, bilm=bilm, dropout=0.0)

    def get_embedding_dimension(self) -> int:
        return self.elmo.get_output_dim()

    def preprocess(
        self, inputs: Sequence[Any], prompt: Optional[str] = None, **kwargs: Any
    ) -> Dict[str, Any]:
        """
        Converts texts or lists of words to character ids. Texts are split into words by the rules
        of the Penn Treebank. `prompt` goes before each of them.

        Returns `input_ids` of shape `(batch_size, num_tokens, max_characters_per_token)` and
        `attention_mask` of shape `(batch_size, num_tokens)`. With a prompt, it adds `prompt_length`
        in words, so that `Pooling` can leave the prompt out.
        """
        before = _words(prompt or "")
        words = [before + _words(each) for each in inputs]
        ids = self.elmo.bilm.characters.batch_ids(words)
        features = {"input_ids": ids, "attention_mask": (ids > 0).any(dim=2).long()}
        return {**features, "prompt_length": len(before)} if before else features

    def forward(self, features: Dict[str, Any], **kwargs: Any) -> Dict[str, Any]:
        """Adds `token_embeddings`, of shape `(batch_size, num_tokens, dim)`."""
        return {**features, "token_embeddings": self.elmo(features["input_ids"])}

    def train(self, mode: bool = True) -> "ElmoTokens":
        # The trainer calls this in every step. Each call makes the biLM prepare its weights again.
        return self if mode == self.training else super().train(mode)

    def save(self, output_path: str, *args: Any, **kwargs: Any) -> None:
        self.elmo.bilm.save_pretrained(output_path)
        save_atomically(self.elmo.mixes.state_dict(), Path(output_path, _MIX_FILE))

    @classmethod
    def load(
        cls,
        model_name_or_path: str,
        subfolder: str = "",
        token: Union[bool, str, None] = None,
        cache_folder: Optional[str] = None,
        revision: Optional[str] = None,
        local_files_only: bool = False,
        **kwargs: Any,
    ) -> "ElmoTokens":
        """Reads what `save` wrote, from a folder or from the Hugging Face Hub."""
        source = (token, cache_folder, revision, local_files_only)
        found = cls.load_dir_path(model_name_or_path, subfolder, *source)
        if found is None:
            raise ConfigurationError(f"{model_name_or_path} holds no folder {subfolder}.")
        folder = Path(found)
        module = cls(str(folder / CONFIG_FILE), str(folder / SAFETENSORS_FILE))
        mix = folder / _MIX_FILE
        module.elmo.mixes.load_state_dict(read_state(mix, str(mix)))
        return module


def _words(text: Union[str, Sequence[str]]) -> List[str]:
    return treebank_words(text) if isinstance(text, str) else list(text)
