#pragma once

namespace syncopate::plan {

/// Bottleneck assignment: changes the perfect matching `column` (of each row) until its largest cost is as
/// small as can be, and returns that. `cost` is row by row. A matching that is nearly right costs little to
/// make right. At most 1,024 rows.
float improve_matching(const float* cost, int size, int* column);

}  // namespace syncopate::plan
