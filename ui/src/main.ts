import { mount } from 'svelte';
import './tokens.css';
import './base.css';
import { connect } from './lib/backend/connect';
import { Inglenook } from './lib/app/inglenook.svelte';
import { applyTheme, storedTheme } from './lib/app/theme';
import App from './views/App.svelte';

applyTheme(storedTheme());

const target = document.getElementById('app');
if (!target) throw new Error('index.html has no #app');

const app = new Inglenook(connect());
mount(App, { target, props: { app } });
void app.start();
