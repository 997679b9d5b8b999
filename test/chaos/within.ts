// Every wait of the driver has an end, and an error that says what was waited for: a driver that waits for ever looks
// like one that works.

/** As `promise`, if it settles in time. What it does goes on; whoever hears the error ends it.
 *  @param what a clause: `the witness ends`
 *  @throws Error that names it */
export async function within<T>(ms: number, what: string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`after ${ms / 1_000} s it is still not so that ${what}`)), ms);
  });
  try {
    return await Promise.race([promise, tooLate]);
  } finally {
    clearTimeout(timer);
  }
}
