"""The support vector machine of scikit-learn (libsvm) with next to no slack."""

import numpy as np

LABEL = "sklearn SVC"
NEEDS = ("sklearn",)
NOTE = "SVC(C=1e10, kernel='linear')"
PROMISE = {"hard_margin": 1e-3}


def hard_margin(Z: np.ndarray) -> np.ndarray:
    """Fit the points against their mirror images: then the intercept is 0."""
    from sklearn.svm import SVC

    model = SVC(C=1e10, kernel="linear", cache_size=1000, max_iter=2_000_000)
    model.fit(np.vstack([Z, -Z]), np.repeat([1, -1], len(Z)))
    if model.fit_status_:
        raise RuntimeError("not converged")
    return np.asarray(model.coef_[0])
