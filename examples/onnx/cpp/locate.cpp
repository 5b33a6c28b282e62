// Where does the sound on standard input come from? One line per frame: seconds, azimuth, score.
// Input: raw 16-bit samples, little-endian, all microphones of the array, at its rate.
#include <onnxruntime_cxx_api.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s MODEL.onnx < sound.raw\n", argv[0]);
    return 2;
  }
  try {
    Ort::Env env;
    Ort::SessionOptions options;
    options.SetIntraOpNumThreads(1);
    Ort::Session session(env, argv[1], options);
    Ort::AllocatorWithDefaultOptions allocator;
    auto metadata = session.GetModelMetadata();
    const auto number = [&](const char* name) {
      return std::stod(metadata.LookupCustomMetadataMapAllocated(name, allocator).get());
    };
    const double rate = number("sample_rate"), silence_db = number("silence_db");
    const auto input = session.GetInputTypeInfo(0);
    auto shape = input.GetTensorTypeAndShapeInfo().GetShape();  // any number of frames, n_mics, frame_length
    const size_t n_mics = shape[1], length = shape[2], hop = length / 2;
    shape[0] = 1;
    std::vector<float> frame(n_mics * length);
    std::vector<int16_t> block(n_mics * hop);  // interleaved
    const auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
    const char *inputs[] = {"frames"}, *outputs[] = {"scores"};
    for (long n = 0; std::fread(block.data(), 2, block.size(), stdin) == block.size(); ++n) {
      for (size_t mic = 0; mic < n_mics; ++mic) {
        float* own = &frame[mic * length];
        std::copy(own + hop, own + length, own);  // half of the frame before
        for (size_t k = 0; k < hop; ++k) own[hop + k] = block[k * n_mics + mic] / 32768.0f;
      }
      double power = 0;
      for (float value : frame) power += value * value / frame.size();
      if (n == 0 || 10 * std::log10(power) < silence_db) continue;
      auto x = Ort::Value::CreateTensor<float>(memory, frame.data(), frame.size(), shape.data(), shape.size());
      auto y = session.Run(Ort::RunOptions{nullptr}, inputs, &x, 1, outputs, 1);
      const float* scores = y[0].GetTensorData<float>();
      const float* top = std::max_element(scores, scores + 360);
      std::printf("%.2f %d %.6f\n", n * hop / rate, static_cast<int>(top - scores), *top);
      std::fflush(stdout);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
