# Inglenook. `make run` and `make test` need nothing but git, Rust, Node and Python; the rest they fetch.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
export PATH := $(CURDIR)/target/tools/node_modules/.bin:$(PATH)

UI_SOURCES := $(shell find ui -type d \( -name node_modules -o -name dist -o -name tests \) -prune -o -type f -print 2>/dev/null)

.PHONY: help run nook test kill9 bench neon peers peers-all types starter bundle ui setup format clean built-peers

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

run: ## build and open the window (in a terminal without a display: `nook chat`)
	@.make/run.sh

nook: ## build the terminal program target/release/nook
	@.make/setup.sh terminal
	@$(MAKE) ui
	@cargo build --release --package cli
	@echo "target/release/nook is ready: target/release/nook --help"

test: ## everything that must be green; ONLY=name,name runs some stages
	@python3 .make/test.py $(if $(ONLY),--only $(ONLY))

kill9: ## kill -9 at a thousand random moments of a load; KILLS=n SEED=n
	@INGLENOOK_KILLS=$(or $(KILLS),1000) INGLENOOK_SEED=$(or $(SEED),1) cargo test --locked --package inglenook-tests \
		--test all -- --exact --nocapture kill9_load::kills_at_random_moments_of_a_load_lose_nothing_that_was_acknowledged

bench: nook ## kernels against their reference, then prefill and decode speed of the starter model and a 1B shape
	target/release/nook bench --kernels --json
	target/release/nook bench --model starter --json
	target/release/nook bench --shape llama-3.2-1b:Q4_K --prompt 64 --gen 32 --json

peers: built-peers ## us and other engines by turns on the same files; ONLY=shape:mix TESTS=pp512,tg,load,… ROUNDS=n
	@python3 tests/peers/run.py $(PEERS_CHOICE)

peers-all: built-peers ## the same for every shape in every common mix
	@python3 tests/peers/run.py --all $(PEERS_CHOICE)

PEERS_CHOICE = $(if $(ONLY),--only $(ONLY)) $(if $(TESTS),--tests $(TESTS)) $(if $(ROUNDS),--rounds $(ROUNDS)) \
	$(if $(THREADS),--threads $(THREADS))

# Their flags lie in the folder, for the processor at hand: cargo finds them only from within.
built-peers: nook
	@.make/setup.sh peers
	@cd tests/peers && cargo build --locked --release --features candle

neon: ## the kernels' tests on 64-bit ARM, emulated
	@.make/neon.sh

types: ## generate ui/src/lib/backend/bindings.ts from the Rust types
	cargo run --quiet --package api --example bindings

starter: ## make the starter model again (see models/starter/README.md)
	$(MAKE) -C models/starter

bundle: ## a .deb of the window, in target/release/bundle/deb
	@.make/setup.sh window
	@$(MAKE) ui
	cd src-tauri && ../ui/node_modules/.bin/tauri build --bundles deb

ui: ui/dist/index.html

ui/node_modules/.installed: ui/package-lock.json
	@.make/setup.sh node
	@echo "── page: packages"
	@cd ui && npm ci --no-audit --no-fund
	@touch $@

ui/dist/index.html: ui/node_modules/.installed $(UI_SOURCES)
	@echo "── page: build"
	@cd ui && npm run --silent build
	@touch $@

setup: ## only install what is missing: system packages, node packages
	@.make/setup.sh window test
	@$(MAKE) ui/node_modules/.installed

format: ## format Rust and the page
	cargo fmt --all
	cd ui && npm run --silent format

clean: ## remove everything built
	rm -rf target ui/dist ui/node_modules
