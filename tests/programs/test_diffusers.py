"""Models and schedulers of diffusers, small and without trained weights."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from programs.training_steps import Batch, check
from xpurt.testing.oracle import agree

diffusers = pytest.importorskip("diffusers")

SMALL: dict[str, Any] = {
    "block_out_channels": (8, 16),
    "layers_per_block": 1,
    "norm_num_groups": 4,
}


def unet() -> Any:
    torch.manual_seed(0)
    return diffusers.UNet2DModel(
        sample_size=16,
        in_channels=3,
        out_channels=3,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        attention_head_dim=4,
        **SMALL,
    )


def autoencoder() -> Any:
    torch.manual_seed(0)
    return diffusers.AutoencoderKL(
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        latent_channels=4,
        sample_size=16,
        **SMALL,
    )


def noise_loss(model: nn.Module, batch: Batch) -> Tensor:
    scheduler = diffusers.DDPMScheduler(num_train_timesteps=100)
    noisy = scheduler.add_noise(batch["images"], batch["noise"], batch["times"])
    return F.mse_loss(model(noisy, batch["times"]).sample, batch["noise"])


def test_a_unet_learns_noise(xpu: torch.device) -> None:
    model = unet()
    images = torch.rand(2, 3, 16, 16)
    batch = {
        "images": images,
        "noise": torch.randn_like(images),
        "times": torch.tensor([7, 60]),
    }
    check(model, batch, noise_loss, xpu)


@pytest.mark.parametrize(
    "name", ["DDPMScheduler", "DDIMScheduler", "EulerDiscreteScheduler"]
)
def test_denoising(name: str, xpu: torch.device) -> None:
    """The noise that a step adds is of a generator of the CPU, as in pipelines that are
    to give the same images on every device."""
    model = unet().eval()
    found = {}
    for device in ("cpu", xpu):
        model.to(device)
        scheduler = getattr(diffusers, name)(num_train_timesteps=100)
        scheduler.set_timesteps(4, device=device)
        generator = torch.Generator("cpu").manual_seed(0)
        image = torch.randn(1, 3, 16, 16, generator=generator).to(device)
        image = image * scheduler.init_noise_sigma
        with torch.no_grad():
            for time in scheduler.timesteps:
                noise = model(scheduler.scale_model_input(image, time), time).sample
                image = scheduler.step(noise, time, image, generator=generator)[0]
        assert image.device.type == torch.device(device).type
        found[device] = image.cpu()
    torch.testing.assert_close(found[xpu], found["cpu"], rtol=1e-3, atol=1e-3)


def test_a_pipeline_gives_the_same_images(xpu: torch.device) -> None:
    found = {}
    for device in ("cpu", xpu):
        pipeline = diffusers.DDPMPipeline(
            unet(), diffusers.DDPMScheduler(num_train_timesteps=100)
        ).to(device)
        pipeline.set_progress_bar_config(disable=True)
        assert pipeline.device.type == torch.device(device).type
        images = pipeline(
            generator=torch.Generator("cpu").manual_seed(0),
            num_inference_steps=2,
            output_type="np",
        ).images
        found[device] = torch.as_tensor(images)
    torch.testing.assert_close(found[xpu], found["cpu"], rtol=1e-3, atol=1e-3)


def test_offloaded_parts_come_to_xpu(xpu: torch.device) -> None:
    pipeline = diffusers.DDPMPipeline(
        unet(), diffusers.DDPMScheduler(num_train_timesteps=100)
    )
    pipeline.model_cpu_offload_seq = "unet"
    pipeline.set_progress_bar_config(disable=True)
    pipeline.enable_model_cpu_offload()
    seen = set()
    pipeline.unet.conv_in.register_forward_hook(
        lambda module, given, _: seen.add(given[0].device)
    )
    pipeline(num_inference_steps=1, output_type="np")
    assert seen == {xpu}
    pipeline.maybe_free_model_hooks()
    assert pipeline.unet.conv_in.weight.device.type == "cpu"
    pipeline.remove_all_hooks()


def coded_loss(model: nn.Module, batch: Batch) -> Tensor:
    coded: Any = model
    latents = coded.encode(batch["images"]).latent_dist.mode()
    return F.mse_loss(coded.decode(latents).sample, batch["images"])


def test_an_autoencoder_trains(xpu: torch.device) -> None:
    check(autoencoder(), {"images": torch.rand(2, 3, 16, 16)}, coded_loss, xpu)


def test_an_autoencoder_in_tiles(xpu: torch.device) -> None:
    model = autoencoder().eval()
    model.enable_tiling()
    model.tile_sample_min_size, model.tile_latent_min_size = 16, 8

    def there_and_back(model: nn.Module, images: Tensor) -> Tensor:
        coded: Any = model
        with torch.no_grad():
            result: Tensor = coded.decode(coded.encode(images).latent_dist.mode())[0]
        return result

    images = torch.rand(1, 3, 24, 24)
    expected = there_and_back(model, images)
    found = there_and_back(model.to(xpu), images.to(xpu))
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-3, atol=1e-3)


def test_time_embeddings(xpu: torch.device) -> None:
    embedded = diffusers.models.embeddings.get_timestep_embedding
    agree(embedded, torch.tensor([0, 7, 99]), 32, device=xpu, rtol=1e-4, atol=1e-4)
