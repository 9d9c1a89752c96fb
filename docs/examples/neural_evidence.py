"""A neural network gives the soft evidence of a testing Bayesian network, and both are trained end to end.

Two sensors each send a noisy signal, which may hold an event. An operator sounds the alarm once he is sure enough that
both do. Nobody has labelled events: rows are labelled with his alarms alone. A neural network turns a signal into the
likelihood of an event, the circuit turns two likelihoods into the probability of an alarm. What is known is given: both
means both, and one alarm in twenty is a slip. How sure is sure enough is learned together with the neural network.
Run with: python docs/examples/neural_evidence.py
"""

import torch
from torch import nn

import tacit
from tacit.torch import TACModule

SAMPLES, ROWS, STEPS = 16, 512, 600
EVENT = torch.exp(-((torch.arange(SAMPLES) - 8) ** 2) / 8)  # a bump in the middle of a signal
SURE = 0.6  # what the operator calls sure enough


def signals(rows: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Signals (rows, 2, samples), the probability of an event in each (rows, 2), and alarms (rows,)."""
    events = torch.randint(2, (rows, 2, 1), generator=generator)
    sent = events * EVENT + torch.randn((rows, 2, SAMPLES), generator=generator)
    truth = (sent @ EVENT - EVENT @ EVENT / 2).sigmoid()  # exact, for white noise and even odds
    sure = truth.prod(dim=1) >= SURE
    return sent, truth, torch.where(sure, 0.95, 0.05).bernoulli(generator=generator)


def operator() -> tacit.TAC:
    """Event1, Event2 -> Both -> Sure -> Alarm. All is known but the thresholds of Sure."""
    net = tacit.Network("operator")
    for name in ("Event1", "Event2"):
        net.add(name, cpt=[0.5, 0.5])
    both = tacit.CPT.from_function(lambda one, two: "true" if one == two == "true" else "false")
    net.add("Both", ["Event1", "Event2"], cpt=both)
    unknown = float("nan")
    test = tacit.TestingCPT([[1, 0], [0, 1]], [[0, 1], [1, 0]], [unknown, unknown], test=[">=", ">"], gamma=16.0)
    net.add("Sure", ["Both"], cpt=test)
    net.add("Alarm", ["Sure"], cpt=[[0.95, 0.05], [0.05, 0.95]])
    return tacit.compile(net, "Alarm", ["Event1", "Event2"])


class Model(nn.Module):
    """One neural network for both signals, and the operator."""

    def __init__(self) -> None:
        super().__init__()
        self.perceive = nn.Sequential(nn.Linear(SAMPLES, 8), nn.Tanh(), nn.Linear(8, 1), nn.Sigmoid())
        self.decide = TACModule(operator()).float()

    def forward(self, sent: torch.Tensor) -> torch.Tensor:
        likelihoods = self.perceive(sent).squeeze(-1)  # (rows, 2): of Event1 and Event2
        return self.decide(likelihoods)[:, 0]  # the probability of an alarm


def main() -> None:
    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    new, truth, expected = signals(10_000, generator)
    best = nn.functional.binary_cross_entropy(torch.where(truth.prod(dim=1) >= SURE, 0.95, 0.05), expected)
    print(f"{'step':>6}{'cross entropy':>16}{'likelihoods against the truth':>32}")
    for step in range(STEPS + 1):
        if step % 150 == 0:
            with torch.no_grad():
                loss = nn.functional.binary_cross_entropy(model(new), expected)
                agreement = torch.corrcoef(torch.stack([model.perceive(new).flatten(), truth.flatten()]))[0, 1]
            print(f"{step:>6}{loss:>16.3f}{agreement:>25.2f} (corr.)")
        sent, _, alarms = signals(ROWS, generator)
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy(model(sent), alarms).backward()
        optimizer.step()
    print(f"  best{best:>16.3f}   knowing events and operator\n")
    some = truth.prod(dim=1).argsort()[[5000, 8000, 9000]]
    explain(model, new[some], truth[some].prod(dim=1))


def explain(model: Model, sent: torch.Tensor, truth: torch.Tensor) -> None:
    """What was learned is an ordinary network: ask it, with hard tests now, how it decides."""
    net = model.decide.network().with_gamma(None)
    tac = tacit.compile(net, "Alarm", ["Event1", "Event2"])
    evidence = model.perceive(sent).squeeze(-1).detach().numpy()
    both, alarm = tac.selected(evidence)["Sure"].posterior[:, 0], tac.posterior(evidence)[:, 0]
    threshold = net.cpt("Sure").thresholds[0]
    for p, q, exact in zip(both, alarm, truth, strict=True):
        sign = ">=" if p >= threshold else "<"
        print(f"P(Both) = {p:.2f} {sign} {threshold:.2f}, so P(Alarm) = {q:.2f}   (exactly: {exact:.2f} and {SURE})")


if __name__ == "__main__":
    torch.set_num_threads(1)  # tensors as small as these are not worth more
    main()
