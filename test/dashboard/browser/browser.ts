// Debian's Chromium, driven by playwright-core: a page that collects what the browser complains about. The shell
// without windows takes half of the processor time of the whole browser.

import { existsSync } from "node:fs";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";

/** Absent on machines without Chromium. */
export const chromiumPath = [
  "/usr/bin/chromium-headless-shell",
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
].find((path) => existsSync(path));

export interface Look {
  readonly theme: "light" | "dark";
  readonly width: number;
  readonly height?: number;
}

export interface OpenedPage {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Errors of the console, of scripts and of the content security policy. */
  readonly complaints: string[];
}

export async function startBrowser(): Promise<Browser> {
  // As root, Chromium starts only without its sandbox.
  return await chromium.launch({
    executablePath: chromiumPath ?? "",
    args: ["--no-sandbox", "--disable-gpu"],
  });
}

export async function openPage(browser: Browser, { theme, width, height = 900 }: Look): Promise<OpenedPage> {
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: theme,
    reducedMotion: "reduce",
  });
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  return { page, context, complaints };
}
