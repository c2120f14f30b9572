/** Svelte context that gives components the application. All that a feature may import from `app/`. */
import { createContext } from 'svelte';
import type { Inglenook } from './inglenook.svelte';

export const [getApp, setApp] = createContext<Inglenook>();
