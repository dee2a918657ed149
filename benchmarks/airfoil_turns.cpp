// Airfoil in C++, an iteration for each line that it reads: prints the root mean square of the
// change, then name and seconds so far of each loop. For bench_airfoil.py, which takes turns.
#define main airfoil_alone
#include "../examples/cpp/airfoil.cpp"
#undef main

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  airfoil::Flow flow(argv[1]);
  for (int c = std::getchar(); c != EOF; c = std::getchar()) {
    if (c != '\n') continue;
    std::printf("%.17g", flow.step());
    for (const auto& [name, seconds] : flow.seconds) std::printf(" %s %.9f", name.c_str(), seconds);
    std::printf("\n");
    std::fflush(stdout);
  }
}
