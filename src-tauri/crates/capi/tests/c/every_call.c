/* Calls every function of the interface, rightly and wrongly. Prints the line that fails. */
#include "inglenook.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            const char *message = inglenook_error_message();                                       \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, message ? message : "");    \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define OK(call) CHECK((call) == INGLENOOK_STATUS_OK)
#define FAILS(call, status, code)                                                                  \
    do {                                                                                           \
        CHECK((call) == (status));                                                                 \
        CHECK(strcmp(inglenook_error_code(), code) == 0);                                          \
        CHECK(strlen(inglenook_error_message()) > 0 && strlen(inglenook_error_remedy()) > 0);      \
    } while (0)

struct pieces {
    char text[8192];
    int n;
    int stop_after;
};

static bool collect(const char *text, size_t n_bytes, void *user_data) {
    struct pieces *pieces = user_data;
    CHECK(strlen(text) == n_bytes);
    strncat(pieces->text, text, sizeof pieces->text - strlen(pieces->text) - 1);
    pieces->n += 1;
    return pieces->n != pieces->stop_after;
}

static InglenookModel wrong_arguments(InglenookApp app) {
    InglenookModel model = 0;
    FAILS(inglenook_open(NULL, NULL), INGLENOOK_STATUS_USAGE, "capi.argument");
    FAILS(inglenook_model_load(app, NULL, &model), INGLENOOK_STATUS_USAGE, "capi.argument");
    FAILS(inglenook_model_load(app, "starter", NULL), INGLENOOK_STATUS_USAGE, "capi.argument");
    FAILS(inglenook_model_load(app, "\xff\xfe", &model), INGLENOOK_STATUS_USAGE, "capi.argument");
    FAILS(inglenook_model_load(app, "no such model", &model), INGLENOOK_STATUS_INPUT, "model.unknown");
    FAILS(inglenook_model_load(app + 1000, "starter", &model), INGLENOOK_STATUS_USAGE, "capi.handle");
    FAILS(inglenook_setting_set(app, "no_such_setting", "1"), INGLENOOK_STATUS_INPUT, "setting.unknown");
    CHECK(model == 0);
    OK(inglenook_model_load(app, "starter", &model));
    CHECK(inglenook_error_code() == NULL && inglenook_error_message() == NULL);
    return model;
}

static void tokens(InglenookModel model) {
    const char *text = "Hello, w\xc3\xb6rld!";
    uint32_t *ids = NULL;
    size_t n_ids = 0;
    OK(inglenook_tokenize(model, text, 0, &ids, &n_ids));
    CHECK(n_ids > 0 && ids != NULL);
    char *back = NULL;
    OK(inglenook_detokenize(model, ids, n_ids, &back));
    CHECK(strcmp(back, text) == 0);
    OK(inglenook_free(back));
    FAILS(inglenook_free(back), INGLENOOK_STATUS_USAGE, "capi.argument");
    OK(inglenook_free(ids));
    OK(inglenook_free(NULL));
    int local = 0;
    FAILS(inglenook_free(&local), INGLENOOK_STATUS_USAGE, "capi.argument");
    OK(inglenook_tokenize(model, "", INGLENOOK_ADD_SPECIAL | INGLENOOK_PARSE_SPECIAL, &ids, &n_ids));
    OK(inglenook_free(ids));
    uint32_t unknown = UINT32_MAX;
    CHECK(inglenook_detokenize(model, &unknown, 1, &back) == INGLENOOK_STATUS_INPUT);
    FAILS(inglenook_detokenize(model, NULL, 3, &back), INGLENOOK_STATUS_USAGE, "capi.argument");
    FAILS(inglenook_tokenize(model, NULL, 0, &ids, &n_ids), INGLENOOK_STATUS_USAGE, "capi.argument");
}

static void answers(InglenookModel model) {
    InglenookOptions options = inglenook_options_default();
    options.max_tokens = 16;
    options.temperature = 0;
    struct pieces pieces = {0};
    InglenookAnswer answer = {0};
    OK(inglenook_generate(model, "What is a token?", &options, collect, &pieces, &answer));
    CHECK(pieces.n > 0 && strcmp(pieces.text, answer.text) == 0);
    CHECK(answer.generated_tokens > 0 && answer.generated_tokens <= 16 && answer.prompt_tokens > 0);
    OK(inglenook_answer_free(&answer));
    CHECK(answer.text == NULL);
    OK(inglenook_answer_free(&answer));
    OK(inglenook_answer_free(NULL));

    struct pieces stopped = {.stop_after = 1};
    options.max_tokens = 4000;
    options.raw = 1;
    options.temperature = 2;
    OK(inglenook_generate(model, "1 2 3 4 5 6 7", &options, collect, &stopped, &answer));
    // The answer may end by itself before the stop reaches it.
    CHECK(stopped.n == 1);
    CHECK(strcmp(answer.finish, "cancelled") == 0 || strcmp(answer.finish, "stop") == 0);
    OK(inglenook_answer_free(&answer));

    InglenookOptions seeded = inglenook_options_default();
    seeded.max_tokens = 1;
    seeded.seed = 7;
    OK(inglenook_generate(model, "Hi", &seeded, NULL, NULL, NULL));
    options.temperature = NAN;
    CHECK(inglenook_generate(model, "Hi", &options, NULL, NULL, NULL) != INGLENOOK_STATUS_OK);
    FAILS(inglenook_generate(model, NULL, NULL, NULL, NULL, NULL), INGLENOOK_STATUS_USAGE, "capi.argument");
    FAILS(inglenook_generate(0, "Hi", NULL, NULL, NULL, NULL), INGLENOOK_STATUS_USAGE, "capi.handle");
}

static void sessions(InglenookModel model, const char *file) {
    InglenookOptions options = inglenook_options_default();
    options.max_tokens = 4;
    options.temperature = 0;
    InglenookSession session = 0;
    OK(inglenook_session_new(model, "Be brief.", &session));
    char *id = NULL;
    FAILS(inglenook_session_id(session, &id), INGLENOOK_STATUS_INPUT, "capi.session_empty");
    FAILS(inglenook_session_save(session, file), INGLENOOK_STATUS_INPUT, "capi.session_empty");
    struct pieces pieces = {0};
    InglenookAnswer answer = {0};
    OK(inglenook_session_send(session, "What is a token?", &options, collect, &pieces, &answer));
    CHECK(strcmp(pieces.text, answer.text) == 0);
    OK(inglenook_answer_free(&answer));
    OK(inglenook_session_id(session, &id));

    char *checkpoint = NULL;
    OK(inglenook_checkpoint_save(session, "before", &checkpoint));
    InglenookAnswer first = {0}, second = {0};
    OK(inglenook_session_send(session, "And a sampler?", &options, NULL, NULL, &first));
    OK(inglenook_checkpoint_restore(session, checkpoint));
    OK(inglenook_session_send(session, "And a sampler?", &options, NULL, NULL, &second));
    CHECK(strcmp(first.text, second.text) == 0 && first.prompt_tokens == second.prompt_tokens);
    OK(inglenook_answer_free(&first));
    OK(inglenook_answer_free(&second));
    CHECK(inglenook_checkpoint_restore(session, "no such checkpoint") == INGLENOOK_STATUS_INPUT);
    FAILS(inglenook_checkpoint_save(session, NULL, &checkpoint), INGLENOOK_STATUS_USAGE, "capi.argument");
    OK(inglenook_free(checkpoint));

    OK(inglenook_session_save(session, file));
    InglenookSession again = 0, restored = 0;
    OK(inglenook_session_open(model, id, &again));
    OK(inglenook_session_restore(model, file, &restored));
    OK(inglenook_session_send(restored, "Once more.", &options, NULL, NULL, NULL));
    OK(inglenook_session_free(restored));
    CHECK(inglenook_session_open(model, "no such session", &restored) == INGLENOOK_STATUS_INPUT);
    CHECK(inglenook_session_restore(model, "/no/such/file", &restored) != INGLENOOK_STATUS_OK);
    OK(inglenook_free(id));
    OK(inglenook_session_free(again));
    OK(inglenook_session_free(session));
    FAILS(inglenook_session_free(session), INGLENOOK_STATUS_USAGE, "capi.handle");
    FAILS(inglenook_session_send(session, "Hi", NULL, NULL, NULL, NULL), INGLENOOK_STATUS_USAGE, "capi.handle");
}

static void embeddings(InglenookApp app, InglenookModel chat, const char *path) {
    float *vector = NULL;
    size_t n_values = 0;
    CHECK(inglenook_embed(chat, "Hi", INGLENOOK_EMBED_QUERY, &vector, &n_values) != INGLENOOK_STATUS_OK);
    InglenookModel model = 0;
    OK(inglenook_model_load(app, path, &model));
    OK(inglenook_embed(model, "hello world", INGLENOOK_EMBED_DOCUMENT, &vector, &n_values));
    double length = 0;
    for (size_t i = 0; i < n_values; i++) {
        length += (double)vector[i] * vector[i];
    }
    CHECK(n_values > 0 && fabs(length - 1) < 1e-4);
    OK(inglenook_free(vector));
    FAILS(inglenook_embed(model, "Hi", 7, &vector, &n_values), INGLENOOK_STATUS_USAGE, "capi.argument");
    OK(inglenook_model_free(model));
    FAILS(inglenook_model_free(model), INGLENOOK_STATUS_USAGE, "capi.handle");
}

int main(int argc, char **argv) {
    CHECK(argc == 4);
    CHECK(strlen(inglenook_version()) > 0);
    InglenookApp app = 0;
    OK(inglenook_open(argv[1], &app));
    OK(inglenook_setting_set(app, "threads", "1"));
    InglenookModel model = wrong_arguments(app);
    tokens(model);
    answers(model);
    sessions(model, argv[2]);
    embeddings(app, model, argv[3]);
    OK(inglenook_close(app));
    FAILS(inglenook_close(app), INGLENOOK_STATUS_USAGE, "capi.handle");
    uint32_t *ids = NULL;
    size_t n_ids = 0;
    FAILS(inglenook_tokenize(model, "x", 0, &ids, &n_ids), INGLENOOK_STATUS_USAGE, "capi.handle");
    puts("every call is right");
    return 0;
}
