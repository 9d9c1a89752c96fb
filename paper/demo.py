"""The paper's first two networks at work: `make demo`."""

from tacit import semantics
from tacit.display import bars
from tacit.examples import abc, noisy_or_classifier


def main() -> None:
    """Show the paper's first two networks at work."""
    net = noisy_or_classifier(threshold=0.7)
    print(net)
    for x1 in ("true", "false"):
        row = {"X1": x1, "X2": "false", "X3": "true"}
        hidden = semantics.posterior(net, "H", row)[0, 0]
        decision = semantics.posterior(net, "Y", row)[0, 0]
        print(f"  {row}: P(H) = {hidden:.3f}, P(H) >= 0.7 is {bool(decision)}, P*(Y = true) = {decision:g}")

    net = abc()
    print(f"\n{net}: the posterior of B as evidence on A grows")
    for value in (0.1, 0.5, 0.7, 0.9):
        weight = semantics.select(net, {"A": value}).nodes["B"].weight
        print(f"\n  evidence on A: {value}   tables selected: {['minus', 'plus'][int(weight[0])]} for A=true, "
              f"{['minus', 'plus'][int(weight[1])]} for A=false")  # fmt: skip
        print(bars(net.states("B"), semantics.posterior(net, "B", {"A": value})[0].tolist()))


if __name__ == "__main__":
    main()
