# docker build -t ctxexp . && docker run --rm -v "$PWD:/work" ctxexp -m model=bert,gpt2,elmo
FROM python:3.11-slim
# or the address of a CPU build's wheel, which is a tenth of the default in size
ARG TORCH=torch
COPY constraints.txt /src/
RUN pip install --no-cache-dir -c /src/constraints.txt "$TORCH"
COPY pyproject.toml README.md LICENSE /src/
COPY conf /src/conf
COPY ctxexp /src/ctxexp
COPY plugins /src/plugins
RUN pip install --no-cache-dir -c /src/constraints.txt /src /src/plugins/ctxexp-isotropy /src/plugins/ctxexp-papers /src/plugins/ctxexp-words
WORKDIR /work
ENV CTXEXP_CACHE=/work/.cache
ENTRYPOINT ["ctxexp"]
