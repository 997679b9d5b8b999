// `HOST:PORT` to listen on, as people write it.

export interface ListenAddress {
  /** A name or an address; of IPv6 without brackets. */
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
}

const PORT_LAST = 65_535;

/** The address in a text, with an IPv6 address in brackets; undefined for any other text. */
export function listenAddressIn(text: string): ListenAddress | undefined {
  const [, bracketed, plain, port = ""] =
    /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9_.-]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  if (host === undefined || Number(port) > PORT_LAST) return undefined;
  return { host, port: Number(port) };
}
