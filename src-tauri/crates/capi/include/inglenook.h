/* Inglenook's C interface. Made by cbindgen from src-tauri/crates/capi: don't edit. See docs/C_API.md. */

#ifndef INGLENOOK_H
#define INGLENOOK_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// Adds the tokens that begin and end a prompt.
#define INGLENOOK_ADD_SPECIAL 1

// Reads the texts of special tokens as those tokens.
#define INGLENOOK_PARSE_SPECIAL 2

// A text to search for.
#define INGLENOOK_EMBED_QUERY 0

// A text to be found.
#define INGLENOOK_EMBED_DOCUMENT 1

// Outcome of a call. The numbers are the exit codes of `nook`.
typedef enum InglenookStatus {
  INGLENOOK_STATUS_OK = 0,
  // A bug in Inglenook.
  INGLENOOK_STATUS_BUG = 1,
  // A wrong call: an argument is missing, or a handle is wrong.
  INGLENOOK_STATUS_USAGE = 2,
  // A file, prompt or request that cannot be used.
  INGLENOOK_STATUS_INPUT = 3,
  // Memory, disk, context or another limit.
  INGLENOOK_STATUS_LIMIT = 4,
  // A device fault that no fallback could mend.
  INGLENOOK_STATUS_DEVICE = 5,
} InglenookStatus;

// How to answer. Negative numbers: as the settings say. Begin with inglenook_options_default.
typedef struct InglenookOptions {
  // Longest answer, in tokens; 0: as the settings say.
  uint32_t max_tokens;
  // Not 0: the prompt is continued as it is, without a chat template. Sessions ignore it.
  uint32_t raw;
  // 0 always picks the most likely token.
  double temperature;
  double top_p;
  double min_p;
  double repeat_penalty;
  int64_t top_k;
  // The same seed and prompt give the same answer.
  int64_t seed;
} InglenookOptions;

// A model. 0 is none.
typedef uint64_t InglenookModel;

// Gets each piece of an answer: a string of `n_bytes` bytes that ends with a zero byte and is valid during the call.
// Returning false stops the answer. It runs on the thread that asked, and must not end by an exception or longjmp.
//
// # Safety
// It only reads the string, and does with `user_data` what its program allows.
typedef bool (*InglenookCallback)(const char *text, size_t n_bytes, void *user_data);

// A complete answer. Free it with inglenook_answer_free.
typedef struct InglenookAnswer {
  char *text;
  // What the model thought before it answered.
  char *reasoning;
  // "stop", "length", "cancelled", "context_full", "time_up" or "tool_calls".
  char *finish;
  uint32_t prompt_tokens;
  uint32_t generated_tokens;
} InglenookAnswer;

// An open application: a data folder with its library, sessions and settings. 0 is none.
typedef uint64_t InglenookApp;

// A chat with a model, saved with every message. 0 is none.
typedef uint64_t InglenookSession;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Options that leave everything to the settings.
struct InglenookOptions inglenook_options_default(void);

// Answers a prompt outside any session, and returns at its end. `options`, `callback` and `answer` may be NULL.
//
// # Safety
// `prompt` is NULL or a string that ends with a zero byte. `options` is NULL or leads to options. `answer` is NULL or
// may be written. `callback` is NULL or may be called with `user_data`.
enum InglenookStatus inglenook_generate(InglenookModel model,
                                        const char *prompt,
                                        const struct InglenookOptions *options,
                                        InglenookCallback callback,
                                        void *user_data,
                                        struct InglenookAnswer *answer);

// Frees the texts of an answer, and sets them to NULL. NULL is allowed.
//
// # Safety
// `answer` is NULL or leads to an answer that Inglenook wrote and that may be written.
enum InglenookStatus inglenook_answer_free(struct InglenookAnswer *answer);

// Loads a model of this computer: a library id such as "starter", or a path. Its vocabulary is read now, its weights
// with the first answer.
//
// # Safety
// `name` is NULL or a string that ends with a zero byte; `model` is NULL or may be written.
enum InglenookStatus inglenook_model_load(InglenookApp app,
                                          const char *name,
                                          InglenookModel *model);

// Frees a model. Its sessions keep it as long as they need it.
enum InglenookStatus inglenook_model_free(InglenookModel model);

// The token ids of a text. `flags`: INGLENOOK_ADD_SPECIAL, INGLENOOK_PARSE_SPECIAL, or 0. Free `ids` with
// inglenook_free.
//
// # Safety
// `text` is NULL or a string that ends with a zero byte; `ids` and `n_ids` are NULL or may be written.
enum InglenookStatus inglenook_tokenize(InglenookModel model,
                                        const char *text,
                                        uint32_t flags,
                                        uint32_t **ids,
                                        size_t *n_ids);

// The text of token ids. Free `text` with inglenook_free.
//
// # Safety
// `ids` is NULL or leads to `n_ids` ids; `text` is NULL or may be written.
enum InglenookStatus inglenook_detokenize(InglenookModel model,
                                          const uint32_t *ids,
                                          size_t n_ids,
                                          char **text);

// The embedding of a text, a vector of length 1. `kind`: INGLENOOK_EMBED_QUERY or INGLENOOK_EMBED_DOCUMENT. Free
// `vector` with inglenook_free.
//
// # Safety
// `text` is NULL or a string that ends with a zero byte; `vector` and `n_values` are NULL or may be written.
enum InglenookStatus inglenook_embed(InglenookModel model,
                                     const char *text,
                                     uint32_t kind,
                                     float **vector,
                                     size_t *n_values);

// The version of the library, such as "0.1.0". It is never freed.
const char *inglenook_version(void);

// The code of this thread's last error, such as "model.unknown"; NULL if its last call succeeded.
// Valid until this thread's next call.
const char *inglenook_error_code(void);

// What went wrong in this thread's last call: a sentence with cause and place. Otherwise as inglenook_error_code.
const char *inglenook_error_message(void);

// What to do about this thread's last error. Otherwise as inglenook_error_code.
const char *inglenook_error_remedy(void);

// Opens a data folder. NULL: the folder of this user's Inglenook. Models run on threads of this process.
//
// # Safety
// `data_dir` is NULL or a string that ends with a zero byte; `app` is NULL or may be written.
enum InglenookStatus inglenook_open(const char *data_dir,
                                    InglenookApp *app);

// Closes an application with its models and sessions. What was saved stays.
enum InglenookStatus inglenook_close(InglenookApp app);

// Changes a setting, as `nook settings set KEY VALUE`: the value is JSON, or text.
//
// # Safety
// `key` and `value` are NULL or strings that end with a zero byte.
enum InglenookStatus inglenook_setting_set(InglenookApp app, const char *key, const char *value);

// Frees a text, token ids or a vector that Inglenook returned. NULL is allowed.
enum InglenookStatus inglenook_free(void *buffer);

// Begins a session. `system_prompt` may be NULL.
//
// # Safety
// `system_prompt` is NULL or a string that ends with a zero byte; `session` is NULL or may be written.
enum InglenookStatus inglenook_session_new(InglenookModel model,
                                           const char *system_prompt,
                                           InglenookSession *session);

// Opens a session of the data folder by the id that inglenook_session_id gave.
//
// # Safety
// `id` is NULL or a string that ends with a zero byte; `session` is NULL or may be written.
enum InglenookStatus inglenook_session_open(InglenookModel model,
                                            const char *id,
                                            InglenookSession *session);

// Restores a session from a file that inglenook_session_save wrote.
//
// # Safety
// `path` is NULL or a string that ends with a zero byte; `session` is NULL or may be written.
enum InglenookStatus inglenook_session_restore(InglenookModel model,
                                               const char *path,
                                               InglenookSession *session);

// Writes a session with all its messages to a file.
//
// # Safety
// `path` is NULL or a string that ends with a zero byte.
enum InglenookStatus inglenook_session_save(InglenookSession session, const char *path);

// The id under which a session is stored; it has one from its first message on. Free `id` with inglenook_free.
//
// # Safety
// `id` is NULL or may be written.
enum InglenookStatus inglenook_session_id(InglenookSession session,
                                          char **id);

// Frees a session. What it saved stays in the data folder.
enum InglenookStatus inglenook_session_free(InglenookSession session);

// Sends a message, and returns at the end of its answer. `options`, `callback` and `answer` may be NULL.
//
// # Safety
// `message` is NULL or a string that ends with a zero byte; the rest as for inglenook_generate.
enum InglenookStatus inglenook_session_send(InglenookSession session,
                                            const char *message,
                                            const struct InglenookOptions *options,
                                            InglenookCallback callback,
                                            void *user_data,
                                            struct InglenookAnswer *answer);

// Names the end of a session, and keeps its computed context on disk. Free `id` with inglenook_free.
//
// # Safety
// `name` is NULL or a string that ends with a zero byte; `id` is NULL or may be written.
enum InglenookStatus inglenook_checkpoint_save(InglenookSession session,
                                               const char *name,
                                               char **id);

// Goes back to a checkpoint of a session: the next message continues from there.
//
// # Safety
// `id` is NULL or a string that ends with a zero byte.
enum InglenookStatus inglenook_checkpoint_restore(InglenookSession session, const char *id);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* INGLENOOK_H */
