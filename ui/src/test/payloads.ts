/** Known XSS payloads; tests/browser tries the same ones on the served page. */
import payloads from './payloads.json';

export const PAYLOADS: readonly string[] = payloads;
