/* A chat in the terminal: each line of standard input is a message. Ends with the input.
 *
 *   cc chat.c -I../include -L../../../../target/release -linglenook -o chat
 *   ./chat DATA_DIR [MODEL]
 */
#include "inglenook.h"

#include <stdio.h>
#include <string.h>

static int fail(const char *what) {
    fprintf(stderr, "%s: %s %s (%s)\n", what, inglenook_error_message(), inglenook_error_remedy(),
            inglenook_error_code());
    return 1;
}

static bool show(const char *text, size_t n_bytes, void *user_data) {
    fwrite(text, 1, n_bytes, (FILE *)user_data);
    fflush((FILE *)user_data);
    return true;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: %s DATA_DIR [MODEL]\n", argv[0]);
        return 2;
    }
    InglenookApp app = 0;
    if (inglenook_open(argv[1], &app) != INGLENOOK_STATUS_OK) {
        return fail("open");
    }
    InglenookModel model = 0;
    InglenookSession session = 0;
    if (inglenook_model_load(app, argc > 2 ? argv[2] : "starter", &model) != INGLENOOK_STATUS_OK ||
        inglenook_session_new(model, NULL, &session) != INGLENOOK_STATUS_OK) {
        int status = fail("load");
        inglenook_close(app);
        return status;
    }
    InglenookOptions options = inglenook_options_default();
    options.max_tokens = 64;
    char line[4096];
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (inglenook_session_send(session, line, &options, show, stdout, NULL) != INGLENOOK_STATUS_OK) {
            fail("send");
        }
        putchar('\n');
    }
    /* Closing the application frees its models and sessions. The chat stays in the data folder. */
    return inglenook_close(app) == INGLENOOK_STATUS_OK ? 0 : fail("close");
}
