"""A layer of knowledge: learning to read digits when only their sum is known.

Every row is a pair of noisy seven-segment digits, labelled with the sum of the two. A neural network reads one digit;
a frozen TAC knows that the sum is a sum, and passes gradients through. The same network without that layer has to find
out about addition as well. Run with: python docs/examples/knowledge_layer.py
"""

import torch
from torch import nn

import tacit
from tacit.torch import TACModule

SEGMENTS = (
    0b1110111,
    0b0010010,
    0b1011101,
    0b1011011,
    0b0111010,
    0b1101011,
    0b1101111,
    0b1010010,
    0b1111111,
    0b1111011,
)
PIXELS = torch.tensor([[float(code >> i & 1) for i in range(7)] for code in SEGMENTS]).repeat_interleave(3, dim=1)
STEPS = 250


def pairs(rows: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Pixels (rows, 2, 21) of two digits, each segment seen three times with noise, and the digits (rows, 2)."""
    generator = torch.Generator().manual_seed(seed)
    digits = torch.randint(10, (rows, 2), generator=generator)
    return PIXELS[digits] + 0.5 * torch.randn((rows, 2, 21), generator=generator), digits


def addition() -> tacit.TAC:
    """First and second, ten states each, and their sum: nothing of it is learned."""
    net = tacit.Network("addition")
    for name in ("First", "Second"):
        net.add(name, states=10, cpt=[0.1] * 10)
    net.add("Sum", ["First", "Second"], 19, tacit.CPT.from_function(lambda a, b: a + b))
    return tacit.compile(net, "Sum", ["First", "Second"])


def reader(outputs: int) -> nn.Sequential:
    """A neural network from the pixels of one digit."""
    return nn.Sequential(nn.Linear(21, 32), nn.ReLU(), nn.Linear(32, outputs))


class WithKnowledge(nn.Module):
    """The reader says how likely each digit is, the circuit what that means for the sum."""

    def __init__(self) -> None:
        super().__init__()
        self.read = reader(10)
        self.add = TACModule(addition()).float()

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        first, second = self.read(pixels).softmax(dim=-1).unbind(dim=1)
        return self.add({"First": first, "Second": second}).clamp_min(1e-6).log()


class WithoutKnowledge(nn.Module):
    """The same reader, and a layer that learns what the circuit knows."""

    def __init__(self) -> None:
        super().__init__()
        self.read = reader(32)
        self.add = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 19))

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.add(self.read(pixels).relu().flatten(1)).log_softmax(dim=1)


def train(model: nn.Module, rows: int) -> nn.Module:
    """All rows in every step."""
    pixels, digits = pairs(rows, seed=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        loss = nn.functional.nll_loss(model(pixels), digits.sum(dim=1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def main() -> None:
    pixels, digits = pairs(2000, seed=2)
    print("correct sums of 2,000 new pairs, after learning from labelled sums")
    print(f"{'pairs seen':>12}{'with knowledge':>18}{'without':>12}{'digits, never labelled':>26}")
    for rows in (100, 300, 1000):
        shares = []
        for model in (WithKnowledge(), WithoutKnowledge()):
            sums = train(model, rows)(pixels).argmax(dim=1)
            shares.append((sums == digits.sum(dim=1)).float().mean().item())
            if isinstance(model, WithKnowledge):
                read = (model.read(pixels).argmax(dim=-1) == digits).float().mean().item()
        print(f"{rows:>12,}{shares[0]:>18.1%}{shares[1]:>12.1%}{read:>26.1%}")


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)  # tensors as small as these are not worth more
    main()
