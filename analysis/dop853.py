"""The explicit Runge-Kutta pair of order 8(5,3) of Dormand and Prince with dense output of order 7, compiled.

Coefficients: E. Hairer, S. P. Norsett, G. Wanner, Solving Ordinary Differential Equations I, 2nd ed. (1993),
section II.10, code DOP853. Written out term by term: loops over the table are slower on small systems.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from analysis.slope import COMPILED, slope

STAGES = 16  # rows of the stage array: 12 of the step, the slope at its end, 3 for dense output
ORDER_EXPONENT = 1.0 / 8.0


@njit(**COMPILED)
def step(f, system, t, h, limit, y, k, w, y_new):  # type: ignore[no-untyped-def]
    """One trial step from (t, y) with k[0] = slope at t: fills k[1..12] and y_new."""
    n = len(y)
    for i in range(n):
        w[i] = y[i] + h * 0.05260015195876773 * k[0, i]
    slope(f, system, t + 0.05260015195876773 * h, limit, w, k[1])
    for i in range(n):
        w[i] = y[i] + h * (0.0197250569845379 * k[0, i] + 0.0591751709536137 * k[1, i])
    slope(f, system, t + 0.0789002279381516 * h, limit, w, k[2])
    for i in range(n):
        w[i] = y[i] + h * (0.02958758547680685 * k[0, i] + 0.08876275643042054 * k[2, i])
    slope(f, system, t + 0.1183503419072274 * h, limit, w, k[3])
    for i in range(n):
        w[i] = y[i] + h * (
            0.2413651341592667 * k[0, i] - 0.8845494793282861 * k[2, i] + 0.924834003261792 * k[3, i]
        )
    slope(f, system, t + 0.2816496580927726 * h, limit, w, k[4])
    for i in range(n):
        w[i] = y[i] + h * (
            0.037037037037037035 * k[0, i] + 0.17082860872947386 * k[3, i] + 0.12546768756682242 * k[4, i]
        )
    slope(f, system, t + 0.3333333333333333 * h, limit, w, k[5])
    for i in range(n):
        w[i] = y[i] + h * (
            0.037109375 * k[0, i]
            + 0.17025221101954405 * k[3, i]
            + 0.06021653898045596 * k[4, i]
            - 0.017578125 * k[5, i]
        )
    slope(f, system, t + 0.25 * h, limit, w, k[6])
    for i in range(n):
        w[i] = y[i] + h * (
            0.03709200011850479 * k[0, i]
            + 0.17038392571223998 * k[3, i]
            + 0.10726203044637328 * k[4, i]
            - 0.015319437748624402 * k[5, i]
            + 0.008273789163814023 * k[6, i]
        )
    slope(f, system, t + 0.3076923076923077 * h, limit, w, k[7])
    for i in range(n):
        w[i] = y[i] + h * (
            0.6241109587160757 * k[0, i]
            - 3.3608926294469414 * k[3, i]
            - 0.868219346841726 * k[4, i]
            + 27.59209969944671 * k[5, i]
            + 20.154067550477894 * k[6, i]
            - 43.48988418106996 * k[7, i]
        )
    slope(f, system, t + 0.6512820512820513 * h, limit, w, k[8])
    for i in range(n):
        w[i] = y[i] + h * (
            0.47766253643826434 * k[0, i]
            - 2.4881146199716677 * k[3, i]
            - 0.590290826836843 * k[4, i]
            + 21.230051448181193 * k[5, i]
            + 15.279233632882423 * k[6, i]
            - 33.28821096898486 * k[7, i]
            - 0.020331201708508627 * k[8, i]
        )
    slope(f, system, t + 0.6 * h, limit, w, k[9])
    for i in range(n):
        w[i] = y[i] + h * (
            -0.9371424300859873 * k[0, i]
            + 5.186372428844064 * k[3, i]
            + 1.0914373489967295 * k[4, i]
            - 8.149787010746927 * k[5, i]
            - 18.52006565999696 * k[6, i]
            + 22.739487099350505 * k[7, i]
            + 2.4936055526796523 * k[8, i]
            - 3.0467644718982196 * k[9, i]
        )
    slope(f, system, t + 0.8571428571428571 * h, limit, w, k[10])
    for i in range(n):
        w[i] = y[i] + h * (
            2.273310147516538 * k[0, i]
            - 10.53449546673725 * k[3, i]
            - 2.0008720582248625 * k[4, i]
            - 17.9589318631188 * k[5, i]
            + 27.94888452941996 * k[6, i]
            - 2.8589982771350235 * k[7, i]
            - 8.87285693353063 * k[8, i]
            + 12.360567175794303 * k[9, i]
            + 0.6433927460157636 * k[10, i]
        )
    slope(f, system, t + h, limit, w, k[11])
    for i in range(n):
        y_new[i] = y[i] + h * (
            0.054293734116568765 * k[0, i]
            + 4.450312892752409 * k[5, i]
            + 1.8915178993145003 * k[6, i]
            - 5.801203960010585 * k[7, i]
            + 0.3111643669578199 * k[8, i]
            - 0.1521609496625161 * k[9, i]
            + 0.20136540080403034 * k[10, i]
            + 0.04471061572777259 * k[11, i]
        )
    slope(f, system, t + h, limit, y_new, k[12])


@njit(**COMPILED)
def error_norm(h, y, y_new, k, states, rtol, atol, peak):  # type: ignore[no-untyped-def]
    """Scaled error of a step: accepted when at most 1.

    Entries beyond the states are sensitivities: their units differ and they may start at zero, so their error
    counts relative to the largest value each has had.
    """
    n = len(y)
    largest = 0.0
    for i in range(states, n):
        largest = max(largest, peak[i])
    sum5 = 0.0
    sum3 = 0.0
    for i in range(n):
        error5 = (
            0.01312004499419488 * k[0, i]
            - 1.2251564463762044 * k[5, i]
            - 0.4957589496572502 * k[6, i]
            + 1.6643771824549864 * k[7, i]
            - 0.35032884874997366 * k[8, i]
            + 0.3341791187130175 * k[9, i]
            + 0.08192320648511571 * k[10, i]
            - 0.022355307863886294 * k[11, i]
        )
        error3 = (
            -0.18980075407240762 * k[0, i]
            + 4.450312892752409 * k[5, i]
            + 1.8915178993145003 * k[6, i]
            - 5.801203960010585 * k[7, i]
            - 0.4226823213237919 * k[8, i]
            - 0.1521609496625161 * k[9, i]
            + 0.20136540080403034 * k[10, i]
            + 0.02265179219836082 * k[11, i]
        )
        size = max(abs(y[i]), abs(y_new[i]))
        if i < states:
            scale = atol + rtol * size
        else:
            scale = rtol * max(size, peak[i], 1e-12 * largest) + 1e-300
        sum5 += (error5 / scale) ** 2
        sum3 += (error3 / scale) ** 2
    if sum5 == 0.0 and sum3 == 0.0:
        return 0.0
    return abs(h) * sum5 / np.sqrt((sum5 + 0.01 * sum3) * n)


@njit(**COMPILED)
def prepare_dense(f, system, t, h, limit, y, y_new, k, w, dense):  # type: ignore[no-untyped-def]
    """Coefficients dense[7, n] of the interpolant over an accepted step (three more slopes)."""
    n = len(y)
    for i in range(n):
        w[i] = y[i] + h * (
            0.056167502283047954 * k[0, i]
            + 0.25350021021662483 * k[6, i]
            - 0.2462390374708025 * k[7, i]
            - 0.12419142326381637 * k[8, i]
            + 0.15329179827876568 * k[9, i]
            + 0.00820105229563469 * k[10, i]
            + 0.007567897660545699 * k[11, i]
            - 0.008298 * k[12, i]
        )
    slope(f, system, t + 0.1 * h, limit, w, k[13])
    for i in range(n):
        w[i] = y[i] + h * (
            0.03183464816350214 * k[0, i]
            + 0.028300909672366776 * k[5, i]
            + 0.053541988307438566 * k[6, i]
            - 0.05492374857139099 * k[7, i]
            - 0.00010834732869724932 * k[10, i]
            + 0.0003825710908356584 * k[11, i]
            - 0.00034046500868740456 * k[12, i]
            + 0.1413124436746325 * k[13, i]
        )
    slope(f, system, t + 0.2 * h, limit, w, k[14])
    for i in range(n):
        w[i] = y[i] + h * (
            -0.42889630158379194 * k[0, i]
            - 4.697621415361164 * k[5, i]
            + 7.683421196062599 * k[6, i]
            + 4.06898981839711 * k[7, i]
            + 0.3567271874552811 * k[8, i]
            - 0.0013990241651590145 * k[12, i]
            + 2.9475147891527724 * k[13, i]
            - 9.15095847217987 * k[14, i]
        )
    slope(f, system, t + 0.7777777777777778 * h, limit, w, k[15])
    for i in range(n):
        difference = y_new[i] - y[i]
        dense[0, i] = difference
        dense[1, i] = h * k[0, i] - difference
        dense[2, i] = 2.0 * difference - h * (k[12, i] + k[0, i])
        dense[3, i] = h * (
            -8.428938276109013 * k[0, i]
            + 0.5667149535193777 * k[5, i]
            - 3.0689499459498917 * k[6, i]
            + 2.38466765651207 * k[7, i]
            + 2.117034582445028 * k[8, i]
            - 0.871391583777973 * k[9, i]
            + 2.2404374302607883 * k[10, i]
            + 0.6315787787694688 * k[11, i]
            - 0.08899033645133331 * k[12, i]
            + 18.148505520854727 * k[13, i]
            - 9.194632392478356 * k[14, i]
            - 4.436036387594894 * k[15, i]
        )
        dense[4, i] = h * (
            10.427508642579134 * k[0, i]
            + 242.28349177525817 * k[5, i]
            + 165.20045171727028 * k[6, i]
            - 374.5467547226902 * k[7, i]
            - 22.113666853125306 * k[8, i]
            + 7.733432668472264 * k[9, i]
            - 30.674084731089398 * k[10, i]
            - 9.332130526430229 * k[11, i]
            + 15.697238121770845 * k[12, i]
            - 31.139403219565178 * k[13, i]
            - 9.35292435884448 * k[14, i]
            + 35.81684148639408 * k[15, i]
        )
        dense[5, i] = h * (
            19.985053242002433 * k[0, i]
            - 387.0373087493518 * k[5, i]
            - 189.17813819516758 * k[6, i]
            + 527.8081592054236 * k[7, i]
            - 11.57390253995963 * k[8, i]
            + 6.8812326946963 * k[9, i]
            - 1.0006050966910838 * k[10, i]
            + 0.7777137798053443 * k[11, i]
            - 2.778205752353508 * k[12, i]
            - 60.19669523126412 * k[13, i]
            + 84.32040550667716 * k[14, i]
            + 11.99229113618279 * k[15, i]
        )
        dense[6, i] = h * (
            -25.69393346270375 * k[0, i]
            - 154.18974869023643 * k[5, i]
            - 231.5293791760455 * k[6, i]
            + 357.6391179106141 * k[7, i]
            + 93.40532418362432 * k[8, i]
            - 37.45832313645163 * k[9, i]
            + 104.0996495089623 * k[10, i]
            + 29.8402934266605 * k[11, i]
            - 43.53345659001114 * k[12, i]
            + 96.32455395918828 * k[13, i]
            - 39.17726167561544 * k[14, i]
            - 149.72683625798564 * k[15, i]
        )


@njit(**COMPILED)
def dense_value(y, dense, i, s):  # type: ignore[no-untyped-def]
    """Component i of the interpolant at the fraction s of the step."""
    r = 1.0 - s
    tail = dense[3, i] + s * (dense[4, i] + r * (dense[5, i] + s * dense[6, i]))
    return y[i] + s * (dense[0, i] + r * (dense[1, i] + s * (dense[2, i] + r * tail)))
