import { mount } from 'svelte';
import './tokens.css';
import './base.css';
import { connect } from './backend/connect';
import { Inglenook } from './app/inglenook.svelte';
import { applyTheme, storedTheme } from './app/theme';
import { i18n, storedLanguage } from './i18n';
import App from './app/App.svelte';

applyTheme(storedTheme());

const target = document.getElementById('app');
if (!target) throw new Error('index.html has no #app');

// The first paint is in the chosen language; if it fails to load, English stays.
await i18n.choose(storedLanguage()).catch(() => undefined);
const app = new Inglenook(connect());
mount(App, { target, props: { app } });
void app.start();
