"""What a user may call: the names of the table, and those of specialists, which keep the same promises."""

import reluflow as rf

SPECIAL = {
    "sectors": "alignment_constants cones_of dead_cone extremal_directions sector ExtremalDirections",
    "margins": "agreement_margin beta_crit class_margins clusters embed grouped_margin hard_margin one_neuron "
    "one_signed_margins smoothed_margin stable_rank symmetrized_network AgreementMargin Clusters GlobalMargin "
    "GroupedMargin KKT Linearity MarginSolution OneNeuron OneSignedMargins",
    "data": "Example",
    "dynamics": "change_measures perturb Alignment Ladder Limit Until",
    "theory": "Condition Finding Observation Prediction",
    "deep": "problem_from_torch",
    "report": "plot_alignment plot_flow plot_limit Comparison Explanation",
}

#: What can be imported, by the package it comes from and its name.
PUBLIC = {
    **{(home, name): getattr(rf, name) for name, home in rf._HOME_OF.items()},
    **{(home, name): getattr(getattr(rf, home), name) for home, names in SPECIAL.items() for name in names.split()},
}
