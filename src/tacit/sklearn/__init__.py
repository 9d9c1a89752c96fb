"""`TACClassifier` and `TACRegressor`: Bayesian networks, testing ones among them, as scikit-learn estimators."""

from tacit.base.version import how_to_install

try:
    import sklearn  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"tacit.sklearn needs scikit-learn: {how_to_install('sklearn')}", name="sklearn"
    ) from error  # fmt: skip

from tacit.sklearn.classifier import TACClassifier
from tacit.sklearn.default import default_network
from tacit.sklearn.regressor import TACRegressor

__all__ = ["TACClassifier", "TACRegressor", "default_network"]
