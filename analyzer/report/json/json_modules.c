/* SPDX-License-Identifier: MIT
 *
 * modules{} of the JSON report.
 */
#include "report/json/json_table.h"

static const struct json_field row_fields[] = {
    TEXT(module_row, "name", name, "full name"),
    TEXT(module_row, "parent", parent, "the module above it"),
    NUMBER(module_row, "depth", depth, "integer", "modules above it"),
    NUMBER(module_row, "parameter_bytes", parameter_bytes, "bytes", "modules below it included"),
    NUMBER(module_row, "gradient_bytes", gradient_bytes, "bytes", "of its parameters"),
    NUMBER(module_row, "activation_bytes", activation_bytes, "bytes",
           "that its forward pass keeps, input and output apart"),
    NUMBER(module_row, "gradients_so_far_bytes", gradients_so_far_bytes, "bytes",
           "of the whole model, when its backward pass begins"),
    NUMBER(module_row, "activations_so_far_bytes", activations_so_far_bytes, "bytes",
           "of the whole model, when its forward pass is done"),
    NUMBER(module_row, "activation_gradient_bytes", activation_gradient_bytes, "bytes",
           "that its backward pass has at its peak"),
    NUMBER(module_row, "forward_ms", forward_ms, "ms", "modules below it included"),
    NUMBER(module_row, "backward_ms", backward_ms, "ms", "likewise"),
    NUMBER(module_row, "time_share", time_share, "fraction", "of the root's forward and backward"),
    NUMBER(
        module_row, "plain_peak_bytes", plain_peak_bytes, "bytes",
        "parameters of the model + gradients so far + activation gradients + activations so far"),
    END,
};

const struct json_field json_modules_fields[] = {
    TEXT(results, "reason", modules.reason, "why nothing is known"),
    TEXT(results, "source", modules.path, "the file it is from"),
    TEXT(results, "root", modules.root, "name of the whole model"),
    NUMBER(results, "count", modules.count, "integer", "modules told of"),
    NUMBER(results, "parameter_bytes", modules.parameter_bytes, "bytes", "of the model"),
    NUMBER(results, "forward_ms", modules.forward_ms, "ms", "of the model"),
    NUMBER(results, "backward_ms", modules.backward_ms, "ms", "of the model"),
    NUMBER(results, "plain_time_ms", modules.plain_time_ms, "ms", "forward_ms + backward_ms"),
    NUMBER(
        results, "plain_peak_bytes", modules.plain_peak_bytes, "bytes",
        "largest over modules: a step without sharding and recomputation, optimizer state apart"),
    TEXT(results, "plain_peak_module", modules.plain_peak_module, "of which module that is"),
    LIST("tree", modules.tree, modules.n_tree, module_row, row_fields,
         "in the order of the forward pass, the root first"),
    END,
};
