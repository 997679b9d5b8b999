// Bounds of the page. They depend on nothing else of the swarm, so they stand beside the page and not in src/limits.ts.

/** At most four updates a second reach the screen. */
export const UPDATE_MS = 250;
/** Time for which a button says that it copied. */
export const COPIED_MS = 1_600;
/** Time for which a notice stays. */
export const NOTICE_MS = 6_000;
/** Wait after a keystroke in a filter, before the list is asked again. */
export const TYPING_MS = 250;
/** Interval of a list that is asked again while it is looked at. */
export const LIST_MS = 2_000;
/** First and longest pause before a lost live view is opened again. */
export const RECONNECT_MS = 500;
export const RECONNECT_MS_MAX = 8_000;
/** Time without anything from the server after which the view counts as lost: three heartbeats of 5 s. */
export const SILENCE_MS = 15_000;
/** Events that the tail keeps. */
export const TAIL_MAX = 2_000;
/** Tasks that a list keeps in the browser. */
export const TASKS_MAX = 10_000;
/** Bars of a waterfall. */
export const BARS_MAX = 2_000;
/** Rows that a list draws above and below the visible ones. */
export const SPARE_ROWS = 8;
