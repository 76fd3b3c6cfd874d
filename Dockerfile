# docker build -t ctxexp . && docker run --rm -v "$PWD:/work" ctxexp -m model=bert,gpt2,elmo
FROM python:3.11-slim
# which torch: cpu, a CUDA version such as cu130, or nothing for the one that the package index has
ARG TORCH_BACKEND=cpu
ENV UV_SYSTEM_PYTHON=1 UV_NO_CACHE=1 UV_COMPILE_BYTECODE=1
COPY constraints.txt /src/
RUN pip install --no-cache-dir -c /src/constraints.txt uv \
 && uv pip install ${TORCH_BACKEND:+--torch-backend $TORCH_BACKEND} -c /src/constraints.txt torch
COPY pyproject.toml README.md LICENSE /src/
COPY conf /src/conf
COPY ctxexp /src/ctxexp
COPY plugins /src/plugins
RUN uv pip install -c /src/constraints.txt /src /src/plugins/ctxexp-lab /src/plugins/ctxexp-papers
WORKDIR /work
ENV CTXEXP_CACHE=/work/.cache
ENTRYPOINT ["ctxexp"]
