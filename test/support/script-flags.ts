// Handles unknown flags of the repository's scripts: usage and exit code 2 instead of a stack.

/** @param read calls `parseArgs`; an error ends the process */
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
