// The user key (nkey) of a data folder: programs of this user log in by signing the server's nonce, so that no
// secret travels. The seed lies in the folder, readable only to its owner. Not here: the connection itself.

import { readFileSync } from "node:fs";
import { createUser } from "@nats-io/nkeys";
import { BrokerError } from "../errors.ts";
import { nkeyLogin, publicKeyOf } from "../transport/login/nats.ts";
import { type DataFolder, writePrivately } from "./data-folder.ts";

/** The public key, `U…`; makes the key if missing. @throws BrokerError when the file holds no user key */
export function userKeyOf(folder: DataFolder): string {
  const key = keyOf(readSeed(folder.userKey) ?? makeSeed(folder.userKey));
  if (key?.startsWith("U") === true) return key;
  throw new BrokerError(`${folder.userKey} holds no NATS user key: delete the file and run \`waggle up\``);
}

/** The fields `nkey` and `sig` of CONNECT. @throws BrokerError when the key is missing; Error when it is damaged */
export function signNonce(folder: DataFolder, nonce: string): object {
  const seed = readSeed(folder.userKey);
  if (seed === undefined)
    throw new BrokerError(`${folder.userKey} is missing: run \`waggle down\`, then \`waggle up\``);
  return nkeyLogin(seed)(nonce) ?? {};
}

function keyOf(seed: string): string | undefined {
  try {
    return publicKeyOf(seed);
  } catch {
    return undefined; // the reason could quote the seed
  }
}

function readSeed(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8").trim();
  } catch {
    return undefined; // absent
  }
}

function makeSeed(file: string): string {
  const seed = new TextDecoder().decode(createUser().getSeed());
  writePrivately(file, `${seed}\n`);
  return seed;
}
