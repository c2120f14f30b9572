import { mount } from 'svelte';
import './fonts.css';
import './tokens.css';
import './base.css';
import { connect, isQuickWindow } from './backend/connect';
import { Inglenook } from './app/inglenook.svelte';
import { applyLook, storedLook } from './app/theme';
import { i18n, storedLanguage } from './i18n';
import App from './app/App.svelte';
import QuickApp from './app/QuickApp.svelte';
import { startQuick } from './app/quick-start';

applyLook(storedLook());

const target = document.getElementById('app');
if (!target) throw new Error('index.html has no #app');

// The first paint is in the chosen language; if it fails to load, English stays.
await i18n.choose(storedLanguage()).catch(() => undefined);
const app = new Inglenook(connect());
if (isQuickWindow()) {
  mount(QuickApp, { target, props: { app } });
  void startQuick(app);
} else {
  mount(App, { target, props: { app } });
  void app.start();
}
