// The files of the page, read once. They are built into the package (src/dashboard/page); without them the interface
// still answers programs.

import { readdirSync, readFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { extname, join } from "node:path";
import { HttpRefusal, safeHeaders } from "./http-answer.ts";

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".ico": "image/x-icon",
  ".woff2": "font/woff2",
};

export class Assets {
  readonly #fileByName: ReadonlyMap<string, Buffer>;

  /** @param folder holds index.html, app.js and app.css */
  constructor(folder: string) {
    this.#fileByName = filesIn(folder);
  }

  get hasPage(): boolean {
    return this.#fileByName.has(INDEX);
  }

  /** The page itself, for every route of the page. @throws HttpRefusal 404 when it is not built */
  sendPage(response: ServerResponse): void {
    this.send(response, INDEX);
  }

  /** @throws HttpRefusal 404 */
  send(response: ServerResponse, name: string): void {
    const bytes = this.#fileByName.get(name);
    if (bytes === undefined)
      throw new HttpRefusal(
        404,
        "WAGGLE_INVALID_MESSAGE",
        this.hasPage
          ? `no such file: ${name}`
          : "the page is not built: run `npm run build` in the package's folder",
      );
    const type = types[extname(name)] ?? "application/octet-stream";
    response.writeHead(200, { ...safeHeaders, "content-type": type, "content-length": bytes.length });
    response.end(bytes);
  }
}

const INDEX = "index.html";

/** Only files of known types; a name from a request never becomes a path. */
function filesIn(folder: string): ReadonlyMap<string, Buffer> {
  try {
    const names = readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isFile() && types[extname(entry.name)] !== undefined)
      .map(({ name }) => name);
    return new Map(names.map((name) => [name, readFileSync(join(folder, name))]));
  } catch {
    return new Map(); // not built: `hasPage` says so
  }
}
