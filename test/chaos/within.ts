// Every wait of the driver has a limit, and an error that names the awaited condition: a driver that waits
// forever looks like a working driver.

/** As `promise`, if settled in time. The work goes on; callers end it on the error.
 *  @param what a clause: `the witness ends`
 *  @throws Error that contains the clause */
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
