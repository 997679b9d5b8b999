// Loads an optional package at run time. Only the conveniences of an adapter need one: the adapters themselves know
// the frameworks by the shapes of their values.

import { MissingPackageError } from "../errors.ts";

/** @param name a variable for the compiler, which must not look for the package @throws MissingPackageError */
export async function importPeer<Module>(name: string, whatFor: string): Promise<Module> {
  try {
    return (await import(name)) as Module;
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw cause;
    const sentence = `${whatFor} needs the package ${name}, which is not installed: run \`npm install ${name}\``;
    throw new MissingPackageError(sentence, { cause });
  }
}
