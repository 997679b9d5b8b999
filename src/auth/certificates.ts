// A certificate authority of one's own, and the certificate of a server. Node creates keys, but no certificates; the
// package node-forge writes those. Both keys are RSA, because node-forge signs with no other kind.

import { createPrivateKey, generateKeyPairSync, randomBytes } from "node:crypto";
import { isIP } from "node:net";
import forge from "node-forge";

export interface Certificate {
  /** PEM. */
  readonly certificate: string;
  /** PEM; secret. */
  readonly key: string;
}

const DAY_MS = 24 * 60 * 60 * 1000;
const AUTHORITY_DAYS = 3650;
const SERVER_DAYS = 825;

/** @param now ms since the Unix epoch */
export function newAuthority(now: number): Certificate {
  const keys = newKey();
  const subject = [{ name: "commonName", value: "waggle certificate authority" }];
  return issue({ keys, subject, signedBy: undefined, now, days: AUTHORITY_DAYS }, [
    { name: "basicConstraints", cA: true, pathLenConstraint: 0, critical: true },
    { name: "keyUsage", keyCertSign: true, cRLSign: true, critical: true },
    { name: "subjectKeyIdentifier" },
  ]);
}

/** @param hosts names and addresses under which clients reach the server, at least one */
export function newServerCertificate(
  authority: Certificate,
  hosts: readonly string[],
  now: number,
): Certificate {
  const keys = newKey();
  const subject = [{ name: "commonName", value: hosts[0] ?? "localhost" }];
  return issue({ keys, subject, signedBy: authority, now, days: SERVER_DAYS }, [
    { name: "basicConstraints", cA: false },
    { name: "keyUsage", digitalSignature: true, keyEncipherment: true, critical: true },
    { name: "extKeyUsage", serverAuth: true },
    {
      name: "subjectAltName",
      altNames: hosts.map((host) => (isIP(host) === 0 ? { type: 2, value: host } : { type: 7, ip: host })),
    },
  ]);
}

interface Issued {
  readonly keys: { readonly publicKey: string; readonly privateKey: string };
  readonly subject: forge.pki.CertificateField[];
  /** Undefined: by its own key. */
  readonly signedBy: Certificate | undefined;
  readonly now: number;
  readonly days: number;
}

function issue({ keys, subject, signedBy, now, days }: Issued, extensions: object[]): Certificate {
  const { pki, md } = forge;
  const certificate = pki.createCertificate();
  certificate.publicKey = pki.publicKeyFromPem(keys.publicKey);
  certificate.serialNumber = `4${randomBytes(16).toString("hex").slice(1)}`; // positive, and without a leading zero
  certificate.validity.notBefore = new Date(now - DAY_MS); // clocks of other machines may be late
  certificate.validity.notAfter = new Date(now + days * DAY_MS);
  certificate.setSubject(subject);
  certificate.setIssuer(
    signedBy === undefined ? subject : pki.certificateFromPem(signedBy.certificate).subject.attributes,
  );
  certificate.setExtensions(extensions);
  certificate.sign(
    pki.privateKeyFromPem(asPkcs1(signedBy === undefined ? keys.privateKey : signedBy.key)),
    md.sha256.create(),
  );
  return { certificate: pki.certificateToPem(certificate), key: keys.privateKey };
}

function newKey(): Issued["keys"] {
  return generateKeyPairSync("rsa", {
    modulusLength: 3072,
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
  });
}

function asPkcs1(key: string): string {
  return createPrivateKey(key).export({ type: "pkcs1", format: "pem" }).toString();
}
