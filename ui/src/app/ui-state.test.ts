// @vitest-environment jsdom
import { beforeEach, describe, expect, it } from 'vitest';
import { UiState } from './ui-state.svelte';

beforeEach(() => localStorage.clear());

describe('the sidebar of a window that changes its width', () => {
  it('makes room and comes back', () => {
    const ui = new UiState();
    ui.fitTo(1200);
    expect(ui.sidebar).toBe(true);
    ui.fitTo(700);
    expect(ui.sidebar).toBe(false);
    ui.fitTo(690);
    ui.fitTo(1200);
    expect(ui.sidebar).toBe(true);
  });

  it('stays closed where the user closed it', () => {
    const ui = new UiState();
    ui.fitTo(1200);
    ui.toggleSidebar();
    ui.fitTo(700);
    ui.fitTo(1200);
    expect(ui.sidebar).toBe(false);
  });

  it('opened over a narrow chat says nothing about a wide window', () => {
    const ui = new UiState();
    ui.fitTo(1200);
    ui.toggleSidebar();
    ui.fitTo(700);
    ui.toggleSidebar();
    expect(ui.sidebar).toBe(true);
    ui.fitTo(1200);
    expect(ui.sidebar).toBe(false);
  });
});
