"""The restricted likelihood of covariance matrices psi, with the location effects theta integrated out (Harville 1974).

With observations y = W theta + e, e ~ N(0, Q^-1), and theta = Lambda s of the equations
s ~ N(0, blockdiag(K_j (x) P_j^-1)),

    C = W_s' Q W_s + blockdiag(K_j^-1 (x) P_j),       W_s = W Lambda
    log p(y | psi) = -1/2 [ log|Q^-1| + sum_j (q_j log|P_j^-1| + k_j log|K_j|) + log|C| + y'Py + (N - p) log 2 pi ]

    form              observations              Q                 Lambda, P_j
    restricted.py     traits of records         R^-1              I, G_j^-1
    scores.py         traits of records         R^-1              blockdiag(I, ..., I (x) [L I], ...), I for scores
    correlated.py     cells of K_g              K_g^-1 / s_g      I, G_j^-1; an equation for each cell without a record
    spectral.py       one diagonalisation of the covariances in place of a factor of C
    integrated.py     restricted.py in lists that are compiled, for engines that draw psi

The first three share sparse.py: a likelihood (pattern, order, W, y), and its point at one psi, which has the factor of
C and from it the value, derivatives, solutions and the average information. base.py is the contract of all forms, and
choice.py takes the quickest.
"""
