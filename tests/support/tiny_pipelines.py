"""Pipelines of diffusers with some thousand random weights, and a vocabulary of two words.

Nothing is fetched: every part is made from a config.
"""

import json
from pathlib import Path
from typing import Any

import torch

WORDS = ["<|startoftext|>", "<|endoftext|>", "i", "n", "k</w>", "in", "ink</w>", "p", "e", "n</w>"]
CHANNELS = (8, 8, 8, 8)  # four levels: the autoencoder's eighth, which a ControlNet takes for given


def tokenizer(folder: Path) -> Any:
    from transformers import CLIPTokenizer

    folder.mkdir(parents=True, exist_ok=True)
    vocabulary, merges = folder / "vocab.json", folder / "merges.txt"
    vocabulary.write_text(json.dumps({word: n for n, word in enumerate(WORDS)}))
    merges.write_text("#version: 0.2\ni n\nin k</w>\n")
    return CLIPTokenizer(
        str(vocabulary), str(merges), model_max_length=8, unk_token="<|endoftext|>"
    )


def text_encoder() -> Any:
    from transformers import CLIPTextConfig, CLIPTextModel

    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1}
    tokens = {"vocab_size": len(WORDS), "max_position_embeddings": 8}
    ends = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
    return CLIPTextModel(CLIPTextConfig(**sizes, **tokens, **ends, num_attention_heads=2))


def unet(in_channels: int = 4, **more: Any) -> Any:
    from diffusers import UNet2DConditionModel

    parts: dict[str, Any] = {
        "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
        "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"),
        "cross_attention_dim": 8,
    }
    return UNet2DConditionModel(
        sample_size=8, in_channels=in_channels, out_channels=4, block_out_channels=(8, 8),
        layers_per_block=1, norm_num_groups=4, attention_head_dim=4, **parts | more,
    )  # fmt: skip


def autoencoder(**more: Any) -> Any:
    from diffusers import AutoencoderKL

    return AutoencoderKL(
        block_out_channels=CHANNELS, layers_per_block=1, latent_channels=4, norm_num_groups=4,
        down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4,
        sample_size=64, **more,
    )  # fmt: skip


def save_stable_diffusion(
    folder: Path, kind: str = "StableDiffusionPipeline", seed: int = 0
) -> str:
    """Of text to image, or of another `kind` with the same parts; gives the folder's name."""
    import diffusers

    torch.manual_seed(seed)
    instruct = "InstructPix2Pix" in kind
    scheduler: Any = diffusers.EulerDiscreteScheduler()
    if not instruct:  # what pipelines of today want of it
        scheduler = diffusers.DDIMScheduler(clip_sample=False, steps_offset=1)
    getattr(diffusers, kind)(
        vae=autoencoder(), text_encoder=text_encoder(), tokenizer=tokenizer(folder / ".words"),
        unet=unet(8 if instruct else 4), scheduler=scheduler, safety_checker=None,
        feature_extractor=None, requires_safety_checker=False,
    ).save_pretrained(folder)  # fmt: skip
    return str(folder)


def save_stable_diffusion_xl(folder: Path) -> str:
    """As SDXL-Turbo's, of text to image."""
    import diffusers
    from transformers import CLIPTextConfig, CLIPTextModelWithProjection

    torch.manual_seed(0)
    first, words = text_encoder(), tokenizer(folder / ".words")
    second = CLIPTextModelWithProjection(
        CLIPTextConfig(**first.config.to_dict() | {"projection_dim": 8})
    )
    net = unet(
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"), cross_attention_dim=16,
        addition_embed_type="text_time", addition_time_embed_dim=8,
        transformer_layers_per_block=1, projection_class_embeddings_input_dim=6 * 8 + 8,
    )  # fmt: skip
    diffusers.StableDiffusionXLPipeline(
        vae=autoencoder(), text_encoder=first, text_encoder_2=second, tokenizer=words,
        tokenizer_2=words, unet=net, scheduler=diffusers.EulerDiscreteScheduler(),
        add_watermarker=False,
    ).save_pretrained(folder)  # fmt: skip
    return str(folder)


def save_kontext(folder: Path) -> str:
    """As FLUX.1 Kontext's, which edits a picture by words."""
    import diffusers
    from tokenizers import Tokenizer, models
    from transformers import T5Config, T5EncoderModel, T5TokenizerFast

    torch.manual_seed(0)
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("ink", -1.0), ("pen", -1.0)]
    words = Tokenizer(models.Unigram(pieces, unk_id=2))
    reader = T5Config(vocab_size=16, d_model=16, d_ff=16, d_kv=4, num_heads=2, num_layers=1)
    transformer = diffusers.FluxTransformer2DModel(
        patch_size=1, in_channels=16, num_layers=1, num_single_layers=1, attention_head_dim=16,
        num_attention_heads=2, joint_attention_dim=16, pooled_projection_dim=8,
        axes_dims_rope=(4, 4, 8), guidance_embeds=True,
    )  # fmt: skip
    diffusers.FluxKontextPipeline(
        vae=autoencoder(shift_factor=0.0, scaling_factor=1.0), transformer=transformer,
        text_encoder=text_encoder(), tokenizer=tokenizer(folder / ".words"),
        text_encoder_2=T5EncoderModel(reader),
        tokenizer_2=T5TokenizerFast(tokenizer_object=words, extra_ids=0, model_max_length=8),
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(),
    ).save_pretrained(folder)  # fmt: skip
    return str(folder)


def save_controlnet(folder: Path) -> str:
    from diffusers import ControlNetModel

    torch.manual_seed(1)
    made = ControlNetModel(
        in_channels=4, block_out_channels=(8, 8), layers_per_block=1, norm_num_groups=4,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), cross_attention_dim=8,
        attention_head_dim=4, conditioning_embedding_out_channels=CHANNELS,
    )  # fmt: skip
    with torch.no_grad():  # a new one begins with zeros at its ends, and changes nothing
        for parameter in made.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    made.save_pretrained(folder)
    return str(folder)


def save_lora(folder: Path) -> str:
    from diffusers import StableDiffusionPipeline
    from peft import LoraConfig, get_peft_model_state_dict

    torch.manual_seed(2)
    net = unet()
    modules = ["to_q", "to_k", "to_v"]
    net.add_adapter(LoraConfig(r=2, init_lora_weights=False, target_modules=modules))
    StableDiffusionPipeline.save_lora_weights(folder, get_peft_model_state_dict(net))
    (file,) = folder.iterdir()
    return str(file)
