"""Models fitted to their optimum: gradients by finite differences, and optima that are known."""

from __future__ import annotations

import numpy as np
import pytest
from ctxexp_papers.claims.fits import (
    Loss,
    Products,
    contrast_loss,
    explained,
    fit,
    free_products,
    kernel_products,
    softmax_loss,
    tied_products,
)

RNG = np.random.default_rng(0)
JOINT = RNG.gamma(2, size=(4, 4))
JOINT /= JOINT.sum()
START = {
    free_products: ((4, 3), (4, 3)), tied_products: ((3, 3), (4, 3)), kernel_products: ((4, 3), (1,)),
}  # fmt: skip


@pytest.mark.parametrize("products", START, ids=lambda one: one.__name__)
@pytest.mark.parametrize("loss", [softmax_loss(JOINT, 0.5), contrast_loss(JOINT)], ids=["softmax", "contrast"])
def test_gradients_are_those_of_small_steps(products: Products, loss: Loss) -> None:
    parts = [np.random.default_rng(1).normal(size=shape) for shape in START[products]]
    current, gradients = products(*parts)
    found = gradients(loss(current)[1])
    for i, part in enumerate(parts):
        for at in np.ndindex(part.shape):
            values = []
            for step in (1e-5, -1e-5):
                moved = [one.copy() for one in parts]
                moved[i][at] += step
                values.append(loss(products(*moved)[0])[0])
            assert found[i][at] == pytest.approx((values[0] - values[1]) / 2e-5, abs=1e-8)


def test_a_wide_model_ends_at_the_conditional_distribution() -> None:
    found = fit(softmax_loss(JOINT), free_products, [RNG.normal(size=(4, 4)) for _ in range(2)])
    chances = np.exp(found) / np.exp(found).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(chances, JOINT / JOINT.sum(axis=1, keepdims=True), atol=1e-5)


def test_binary_contrast_ends_at_pmi() -> None:
    found = fit(contrast_loss(JOINT), free_products, [RNG.normal(size=(4, 4)) for _ in range(2)])
    pmi = np.log(JOINT / JOINT.sum(axis=1, keepdims=True) / JOINT.sum(axis=0))
    np.testing.assert_allclose(found, pmi, atol=1e-4)
    assert explained(found, pmi) == pytest.approx(1.0)


def test_half_a_formula_explains_three_quarters() -> None:
    formula = RNG.normal(size=(5, 6))
    assert explained(formula + 3.0, formula / 2) == pytest.approx(0.75)
    assert explained(formula + np.arange(5.0)[:, None], formula, axis=1) == pytest.approx(1.0)
    assert explained(formula, -formula) == pytest.approx(-3.0)
