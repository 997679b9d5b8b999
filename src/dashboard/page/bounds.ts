// Bounds of the page. No bound of the swarm depends on them, so src/limits.ts does not list them.

/** At most four updates a second reach the screen. */
export const UPDATE_MS = 250;
/** Duration of "Copied" on a button. */
export const COPIED_MS = 1_600;
/** Duration of a notice. */
export const NOTICE_MS = 6_000;
/** Wait after a keystroke in a filter, before the list is asked again. */
export const TYPING_MS = 250;
/** Minimum interval between two readings of a visible list. */
export const LIST_MS = 2_000;
/** First and longest pause before a lost live view is opened again. */
export const RECONNECT_MS = 500;
export const RECONNECT_MS_MAX = 8_000;
/** Maximum events in the tail. */
export const TAIL_MAX = 2_000;
/** Maximum tasks in the list. */
export const TASKS_MAX = 10_000;
/** Rows drawn above and below the visible rows. */
export const SPARE_ROWS = 8;
