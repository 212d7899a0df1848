"""Language models of transformers that are larger than the GPU, under AUTO and under the
mapping GPU with overflow."""

import pytest
from own_process import output

pytest.importorskip("transformers")

# Four times the GPU's memory, nearly all of it experts.
MIXTRAL = """
import torch, transformers, xpurt
torch.manual_seed(0)
config = transformers.MixtralConfig(
    vocab_size=512, hidden_size=512, intermediate_size=1024, num_hidden_layers=4,
    num_attention_heads=8, num_key_value_heads=2, num_local_experts=8,
    num_experts_per_tok=2, max_position_embeddings=256, bos_token_id=1, eos_token_id=None,
)
model = transformers.MixtralForCausalLM(config).eval()
size = sum(each.nbytes for each in model.state_dict().values())
assert size > 4 * MEMORY, size
prompt = torch.randint(3, 512, (1, 12))
def written(model, prompt):
    return model.generate(
        prompt, max_new_tokens=32, do_sample=False, pad_token_id=0
    )[0].tolist()
wanted = written(model, prompt)
model = model.to("xpu")
print(written(model, prompt.to("xpu")) == wanted)
rows = {row.device: row for row in xpurt.op_report().devices}
gpu = next(row for name, row in rows.items() if "virtual GPU" in name)
print(gpu.bytes_moved > 0, gpu.ops > 0)
"""
MEMORY = 48 << 20


@pytest.mark.parametrize("mapping", ["AUTO", "GPU"])
def test_a_mixture_of_experts_writes_the_same_tokens(mapping: str) -> None:
    printed = output(
        MIXTRAL.replace("MEMORY", str(MEMORY)),
        XPURT_MAPPING=mapping,
        XPURT_GPU_OVERFLOW="host" if mapping == "GPU" else "",
        XPURT_VIRTUAL_GPU="strict",
        XPURT_VIRTUAL_GPU_MEMORY=str(MEMORY),
    )
    assert printed.splitlines() == ["True", "True True"]
