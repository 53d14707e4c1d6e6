#include "syncopate/nn/layers/show.h"

#include <ATen/ATen.h>

#include "syncopate/base/error.h"

namespace syncopate::nn {

at::Tensor show(const at::Tensor& bytes_BCHW, const at::Tensor& views_B3, const at::Tensor& levels_CL) {
  const int64_t B = bytes_BCHW.size(0), C = bytes_BCHW.size(1), H = bytes_BCHW.size(2),
                W = bytes_BCHW.size(3);
  check(bytes_BCHW.scalar_type() == at::kByte && levels_CL.size(0) == C && views_B3.size(0) == B,
        "images of bytes, a view of each and the levels of every channel");
  const at::TensorOptions whole = bytes_BCHW.options().dtype(at::kLong);
  const at::Tensor views = views_B3.to(at::kLong);
  const at::Tensor columns_W = at::arange(W, whole);
  const at::Tensor ahead_BW = at::where(views.select(1, 2).unsqueeze(1).ne(0), W - 1 - columns_W, columns_W);
  const at::Tensor x_BW = ahead_BW + views.select(1, 1).unsqueeze(1);
  const at::Tensor y_BH = at::arange(H, whole) + views.select(1, 0).unsqueeze(1);
  const auto within = [](const at::Tensor& place, int64_t size) {
    return place.ge(0).logical_and(place.lt(size));
  };
  const at::Tensor seen_BHW = within(y_BH, H).unsqueeze(2).logical_and(within(x_BW, W).unsqueeze(1));
  const at::Tensor from_BHW = y_BH.clamp(0, H - 1).unsqueeze(2) * W + x_BW.clamp(0, W - 1).unsqueeze(1);
  const at::Tensor from_BCP = from_BHW.view({B, 1, H * W}).expand({B, C, H * W});
  const at::Tensor moved_BCHW = bytes_BCHW.reshape({B, C, H * W}).gather(2, from_BCP).view({B, C, H, W});
  const at::Tensor level_BCHW = (moved_BCHW * seen_BHW.unsqueeze(1)).to(at::kLong);
  const at::Tensor channel_C = at::arange(C, whole).view({C, 1, 1}) * levels_CL.size(1);
  return at::take(levels_CL, level_BCHW + channel_C);
}

}  // namespace syncopate::nn
