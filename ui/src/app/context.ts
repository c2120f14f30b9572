/** Hands the application to the components below. */
import { createContext } from 'svelte';
import type { Inglenook } from './inglenook.svelte';

export const [getApp, setApp] = createContext<Inglenook>();
