"""Formulas as they are typed in a claim, set with Greek letters and indices; what letters mean, paper by paper."""

import re

_NAMES = [
    "alpha",
    "beta",
    "gamma",
    "delta",
    "eps",
    "zeta",
    "eta",
    "theta",
    "kappa",
    "lambda",
    "mu",
    "xi",
    "sigma",
    "phi",
]
_GREEK = dict(zip(_NAMES, "αβγδεζηθκλμξσφ", strict=True))
_PLAIN = {">=": "≥", "<=": "≤", "!=": "≠", "->": "→", "+-": "±", "oo": "∞", "sqrt": "√", ".": "·", "'": "′"}
_TOKEN = re.compile(
    r"(?P<id>(?<![\w-])(?:PL|ML|SBG|LL|C|E)-[A-Z](?:[\w.]*[\w*'])?(?![\w-]))"
    r"|(?<=[A-Za-z|)])_(?P<sub>\+-|[+-](?![\w(])|[A-Z]'|[A-Za-z0-9]+)"
    r"|(?<![A-Za-z])(?P<signed>mu|gamma|[A-Z]|[a-z])(?P<sign>\+-|[+-])(?![\w(*])"
    r"|\^(?:\((?P<bracket>[^()]*)\)|(?P<sup>-?[A-Za-z0-9]+[+-]?(?!\w)|[+-]))"
    rf"|(?<![A-Za-z])(?P<greek>{'|'.join(_GREEK)})(?![A-Za-z])"
    r"|(?P<plain>>=|<=|!=|->|\+-|(?<![A-Za-z])(?:oo(?!\w)|sqrt(?=[\d(]))"
    r"|(?<=[\w)*+-])\.(?=[A-Za-z](?![A-Za-z]))|(?<=[\w)|])'(?!\w))"
)


def literal(text):
    """Write plain text so that nothing in it is markup."""
    return re.sub(r"([*`_|\\])", r"\\\1", str(text))


def _raised(role, text, markdown):
    text = re.sub("|".join(_GREEK), lambda found: _GREEK[found[0]], text)
    text = literal(text.replace("+-", "±").replace("-", "−").replace("'", "′"))
    return f"<{role}>{text}</{role}>" if markdown else rf"\ :{role}:`{text}`\ "


def _in_formula(found):
    """Tell an index or a prime from the underscore of a name in the code and the end of a quotation."""
    word = re.search(r"[A-Za-z]*$", found.string[: found.start()])[0]
    return len(word) < 2 or word in _GREEK or word == "sum"


def _replaced(found, markdown):
    kind = found.groupdict()
    if kind["id"] or ((kind["sub"] or kind["plain"] == "'") and not _in_formula(found)):
        return literal(found[0])
    if kind["sub"]:
        return _raised("sub", kind["sub"], markdown)
    if kind["signed"]:
        return _GREEK.get(kind["signed"], kind["signed"]) + _raised("sub", kind["sign"], markdown)
    if kind["greek"]:
        return _GREEK[kind["greek"]]
    if kind["plain"]:
        return _PLAIN[kind["plain"]]
    return _raised("sup", kind["bracket"] or kind["sup"], markdown)


def typeset(text, *, markdown=False):
    """Write text with formulas in it as reStructuredText, or as Markdown; ids of claims stay as they are."""
    text, parts, at = str(text), [], 0
    for found in _TOKEN.finditer(text):
        parts += [literal(text[at : found.start()]), _replaced(found, markdown)]
        at = found.end()
    return "".join([*parts, literal(text[at:])])


def typeset_row(row):
    """Set the formulas of a row of a Markdown table, except in cells with links or code."""
    cells = re.split(r"(?<!\\)\|", row)
    return "|".join(
        cell
        if "](" in cell or "`" in cell or set(cell) <= set("-: ")
        else typeset(cell.replace("\\|", "|"), markdown=True)
        for cell in cells
    )


_ALL = {
    "x_i, y_i": "the n samples and their labels, +1 or -1",
    "w_j, a_j": "the weights of neuron j in the first and in the second layer; p neurons, theta all their weights",
    "f(x)": "the network, the sum of all a_j phi(w_j.x); phi is the ReLU, or leaky with a slope for negative input",
    "w.x, |w|": "inner product and length",
    "active": "a sample with w_j.x_i > 0 is active for neuron j; which ones are is the pattern of the neuron",
}
_BALANCED = {"balanced": "|a_j| = |w_j| for every neuron"}
_MARGIN = {"margin": "the smallest y_i f(x_i); normalised: divided by |theta|^2"}
_KKT = {"KKT": "a network that meets the first-order conditions of the largest normalised margin"}
_DEAD = {"dead": "a neuron with no active sample: it does not move any more"}
_SMOOTHED = {"smoothed margin": "the margin with a soft minimum in place of the smallest sample, made from the loss"}

#: What the letters and words on the page of a paper mean.
SYMBOLS = {
    "PL": {
        **_ALL,
        "L, l, g, r": "the loss, that of one sample, its force g = -l', and r: 1 for a sum of losses, 1/n for a mean",
        "I+, I-": "the samples of either class, n_+- of them; m+, m-: the neurons with a_j > 0 and a_j < 0",
        "x+, x-": "the sums of the samples of either class",
        "w+, w-": "the shortest vector with w.x_i >= 1 on its class (PL-D2)",
        "s_j, u, D": "the sign of a_j; the direction of w_j; the force on it: r g y_i x_i added up over active samples",
        "P_u": "the part at right angles to u",
        "G(w)": "how fast a tiny neuron of direction w grows, the sum of r g(0) y_i phi(w.x_i)",
        "sector": "the weights with one pattern; extremal: where G is largest or smallest among all directions nearby",
        **_DEAD,
        "trapped": "dead, or in the extremal sector of its sign",
        "stable rank": "|W|_F^2/|W|_2^2 of the first layer W: 1 if all its rows are parallel",
        **_BALANCED,
        **_MARGIN,
        **_KKT,
    },
    "ML": {
        **_ALL,
        "L, L_+-": "the loss, a sum over the samples, and the part of either class",
        "mu": "the smallest cosine between signed samples y_i x_i (ML-A1)",
        "X_min, X_max": "the smallest and the largest |x_i|",
        "x+, x-": "the sums of the samples of either class, n_+- of them",
        "S+, S-, S_dead": "the weights active on exactly the positive samples, exactly the negative ones, or on none",
        "K": "the cone of all positive combinations of the y_i x_i",
        "x_a(w), n_a": "the sum of y_i x_i over the samples active for w, and their number",
        "eps W_0": "the start, its scale times its shape; W_max is the largest norm of a row of W_0",
        "zeta_1, zeta_2, xi": "how wide a cap around x+ lies in S+; how far neurons start from the wrong ray; mu^2",
        "c, c0, h": "c = min(zeta_2, xi); c0 a cosine (ML-A2); h the harmonic factor that replaces 4 log n",
        "T, B": "the time until which norms stay small (ML-L3); how large outputs may be in the early phase",
        "t_1, t_1', t*, t_2": "bounds of the time of alignment; a time when all are trapped; when max|f| is 1/4",
        "gamma_+-, N_+-": "the margin of a class by itself; the sum of a_j^2 of its neurons at t*",
        "kappa, alpha_L": "constants of the rate: 1 (exponential loss) or 1/(2 log 2) (logistic); as given in ML-T1b",
        **_DEAD,
        "trapped": "in the cone of its sign, or dead",
    },
    "SBG": {
        **_ALL,
        "k, v": "k neurons have the fixed output +v, k have -v",
        "a": "without an index: the slope of the leaky ReLU",
        "L, eps": "the mean loss of the samples, and a value it shall reach",
        "w, u": "the means of the neurons with output +v and with -v; r, the radius: how far one is from its mean",
        "NAR": "neural agreement regime: neurons of one sign have the same pattern, |w_j.x_i| >= beta|w_j|",
        "PAR": "perfect agreement regime: that pattern is y for output +v, and -y for -v",
        "PAR-QP": "the convex program of the PAR: the smallest |w|^2 + |u|^2 that fits the samples with these patterns",
        "gamma_phi": "1/sqrt(|w|^2 + |u|^2) at its solution",
        "V_beta^+": "vectors v with v.x_i >= beta|v| on all positive samples and on a negative one; V_beta^- mirrored",
        "R_x": "the largest |x_i|",
        "margin": "the smallest y_i f(x_i); normalised: divided by |W|, the size of the layer that is trained",
        **_SMOOTHED,
    },
    "LL": {
        **_ALL,
        "a": "without an index: the slope of the leaky ReLU",
        "L": "the mean loss; nL < log 2 means that every sample is on the right side",
        "mu": "the mean of the y_i x_i; mu+, mu-: with the slope on the negative (positive) samples",
        "w*, gamma*": "the best linear classifier, of length 1, and its margin",
        "w+, gamma+": "the best single neuron of positive output and twice its margin; w-, gamma- of negative output",
        "v+, v-": "the shortest vector with v.x_i >= 1 on its class",
        "support": "the samples at which a margin is attained; dual: their weights",
        "K, C, z_i": "driving directions: sums of a_i z_i, z_i = y_i x_i, with a_i from the slope to 1; C: separators",
        "theta_0, |theta|_M": "the start; the largest |w_j| or |a_j|",
        "L~": "the loss as it is for tiny outputs, linear in f",
        "b": "how much of each neuron grows at first; good: no entry is 0 and both signs occur",
        "T_1, T_12, t_0": "times of the end of phase I and within phase II",
        "branch": "two solutions from one start; ridge: a kink that both sides leave, where this can happen",
        "hints": "three positive samples that fix the outcome: one far along w*, two at eps from the boundary",
        **_BALANCED,
        **_MARGIN,
        **_SMOOTHED,
        **_KKT,
    },
}
