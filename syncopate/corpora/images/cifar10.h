#pragma once

#include <filesystem>

#include "syncopate/corpora/images/images.h"
#include "syncopate/corpora/text_task.h"

namespace syncopate::corpora {

/// CIFAR-10 in its original binary form: records of a label and 3 x 32 x 32 pixels. `path`: a folder with
/// data_batch_1.bin to data_batch_5.bin, test_batch.bin and batches.meta.txt (the names of the labels; known
/// without it), or one file of records: used whole as the test split, or, for training, a fixed tenth held
/// out of it. Throws DataError with file and record.
ImageTask load_cifar10(const std::filesystem::path& path, Purpose purpose);

}  // namespace syncopate::corpora
