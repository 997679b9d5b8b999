// Published figures of other rules, quoted. Used only for comparison with Waggle's figures.

/** LOCO's rule under overload and under a spike: means of 20 seeds, with the half-width of their confidence
 *  interval. */
export const locoPublished = [
  { alpha: 0, jain: 0.718, jainCi: 0.009, neverServed: 0, neverServedCi: 0, spike: 32.5, spikeCi: 2 },
  { alpha: 0.25, jain: 0.645, jainCi: 0.01, neverServed: 0, neverServedCi: 0, spike: 38, spikeCi: 2.6 },
  {
    alpha: 0.5,
    jain: 0.512,
    jainCi: 0.005,
    neverServed: 1.55,
    neverServedCi: 0.5,
    spike: 60.7,
    spikeCi: 6.9,
  },
  {
    alpha: 0.75,
    jain: 0.495,
    jainCi: 0.003,
    neverServed: 3.4,
    neverServedCi: 0.46,
    spike: 102.5,
    spikeCi: 15.3,
  },
  { alpha: 1, jain: 0.493, jainCi: 0.003, neverServed: 3.7, neverServedCi: 0.4, spike: 102.5, spikeCi: 15.3 },
] as const;

/** LOCO's rule under a sustainable load, at every α. */
export const sustainablePublished = { jain: 0.824, jainCi: 0.016, neverServed: 0, waitMean: 1.1 } as const;
