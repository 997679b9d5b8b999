// What a script of this repository does with flags that it does not know: its usage and exit code 2, not a stack.

/** @param read calls `parseArgs`, whose refusals end the process */
export function readFlags<T>(usage: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!isRefusal(error)) throw error;
    console.error(`${error.message}\n\n${usage}`);
    process.exit(2);
  }
}

function isRefusal(error: unknown): error is Error & { readonly code: string } {
  return error instanceof Error && "code" in error && String(error.code).startsWith("ERR_PARSE_ARGS_");
}
