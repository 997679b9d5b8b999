// Who may ask: checks of every request before anything is read. A page of another site, or a name that a foreign DNS
// server points at this machine, must get nothing and change nothing.
//
// - Host: only names of this machine (DNS rebinding). Loopback names always, with any port: a tunnel may change it.
// - Signed in: the printed URL holds a token. It sets a cookie, HttpOnly and SameSite=Strict, and leaves the URL.
// - Changes: besides, an Origin that equals the Host, a JSON body, and a token that only the page can read.

import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Random } from "../clock.ts";
import { limits } from "../limits.ts";
import { HttpRefusal } from "./http-answer.ts";

export interface GateOptions {
  /** Names and addresses, without port, by which the server may be called besides the loopback names. Lower case. */
  readonly hosts: readonly string[];
  readonly isReadOnly: boolean;
  /** Token of the printed URL. Default: a random one. */
  readonly token?: string | undefined;
  readonly random: Random;
}

const loopbackHosts: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);

export class Gate {
  /** In the printed URL. */
  readonly token: string;
  /** Sent with each change, besides the cookie. */
  readonly changeToken: string;
  readonly #hosts: ReadonlySet<string>;
  readonly #isReadOnly: boolean;
  readonly #cookie: string;
  /** Set when the port is known: browsers share cookies between the ports of a host. */
  #cookieName = "waggle";

  constructor({ hosts, isReadOnly, token, random }: GateOptions) {
    this.token = token ?? random.id(limits.dashboardTokenCharacters);
    this.changeToken = derived(this.token, "change");
    this.#cookie = derived(this.token, "cookie");
    this.#hosts = new Set([...loopbackHosts, ...hosts]);
    this.#isReadOnly = isReadOnly;
  }

  set port(port: number) {
    this.#cookieName = `waggle-${port}`;
  }

  /** @throws HttpRefusal 403 for a name that is not this server's, or a request of another site */
  requireOwnHost({ headers }: IncomingMessage): void {
    const { host = "", origin } = headers;
    if (!this.#hosts.has(nameOf(host)))
      throw new HttpRefusal(
        403,
        "WAGGLE_FORBIDDEN",
        "The name in the request's Host header is not this dashboard's: open the URL that `waggle` printed",
      );
    if (origin !== undefined && !isSame(origin, host)) throw foreign("Origin");
    const site = headers["sec-fetch-site"];
    const isNavigation = headers["sec-fetch-mode"] === "navigate";
    if (site === "cross-site" && !isNavigation) throw foreign("Sec-Fetch-Site");
  }

  isToken(text: string): boolean {
    return isEqual(text, this.token);
  }

  /** The header that signs a browser in. */
  get setCookie(): string {
    return `${this.#cookieName}=${this.#cookie}; Path=/; HttpOnly; SameSite=Strict`;
  }

  isSignedIn({ headers }: IncomingMessage): boolean {
    const cookies = (headers.cookie ?? "").split(";").map((part) => part.trim());
    return cookies.some((cookie) => isEqual(cookie, `${this.#cookieName}=${this.#cookie}`));
  }

  /** @throws HttpRefusal 401 */
  requireSignedIn(request: IncomingMessage): void {
    if (this.isSignedIn(request)) return;
    throw new HttpRefusal(401, "WAGGLE_FORBIDDEN", SIGN_IN);
  }

  /** @throws HttpRefusal 403, 415 */
  requireChange({ headers }: IncomingMessage): void {
    if (this.#isReadOnly)
      throw new HttpRefusal(
        403,
        "WAGGLE_FORBIDDEN",
        "This dashboard was started with --read-only: use the command line, or start it without the flag",
      );
    if (headers.origin === undefined) throw foreign("Origin");
    const token = headers["x-waggle-token"];
    if (typeof token !== "string" || !isEqual(token, this.changeToken))
      throw new HttpRefusal(
        403,
        "WAGGLE_FORBIDDEN",
        "The header x-waggle-token is missing, or belongs to an earlier start of the dashboard: reload the page",
      );
    if (!/^application\/json\b/.test(headers["content-type"] ?? ""))
      throw new HttpRefusal(
        415,
        "WAGGLE_INVALID_MESSAGE",
        "The body must be JSON: content-type application/json",
      );
  }
}

export const SIGN_IN =
  "Not signed in: open the URL that the newest start of `waggle up` or `waggle dashboard` printed";

/** The same for the same token: a browser stays signed in when the dashboard starts again. Does not lead back to it. */
function derived(token: string, purpose: string): string {
  const hash = createHmac("sha256", token).update(purpose).digest("hex");
  return hash.slice(0, limits.dashboardTokenCharacters);
}

function foreign(header: string): HttpRefusal {
  return new HttpRefusal(
    403,
    "WAGGLE_FORBIDDEN",
    `The request does not come from the dashboard's own page (${header}): nothing was read or changed`,
  );
}

/** `127.0.0.1:4280` → `127.0.0.1`, `[::1]:4280` → `[::1]`. */
function nameOf(host: string): string {
  return host.toLowerCase().replace(/:\d{1,5}$/, "");
}

function isSame(origin: string, host: string): boolean {
  return URL.canParse(origin) && new URL(origin).host === host.toLowerCase().replace(/:(?:80|443)$/, "");
}

/** In a time that does not depend on the first difference. */
function isEqual(one: string, other: string): boolean {
  const hashOf = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(hashOf(one), hashOf(other));
}
