// Compiled once for each instruction set, with SYNCOPATE_ISA naming it; see cmake/kernels.cmake.
#include "syncopate/nn/kernels/kernels.h"

#include "syncopate/nn/kernels/attention.h"
#include "syncopate/nn/kernels/drop.h"
#include "syncopate/nn/kernels/gelu.h"
#include "syncopate/nn/kernels/half_product.h"
#include "syncopate/nn/kernels/norm.h"

#define SYNCOPATE_TEXT_OF(x) #x
#define SYNCOPATE_TEXT(x) SYNCOPATE_TEXT_OF(x)

namespace syncopate::nn::kernels::SYNCOPATE_ISA {

const Kernels table = {
    SYNCOPATE_TEXT(SYNCOPATE_ISA),
    norm,
    norm_grad,
    embed,
    embed_grad,
    gelu,
    gelu_grad,
    attention_scratch,
    attention,
    attention_grad,
    add_rows,
    drop,
    kHasHalf,
    half_size,
    half_pack,
    half_multiply,
};

}  // namespace syncopate::nn::kernels::SYNCOPATE_ISA
