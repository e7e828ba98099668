"""A model as a formula, in the grammar of lme4 and bambi, and the analysis that it stands for."""
